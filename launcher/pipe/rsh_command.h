#pragma once

#include <string>
#include <vector>

#include "launcher/pipe/pipe.h"

namespace corro::launcher {

// What a --rsh-agent runs for a host.  `{host}` in its words stands for the host, or for user@host
// where a user is given; where there is none, that follows.  The last word is the command there:
// `sh`, which reads from its input what to do.  A single word without anything to quote means the
// same to those who pass it to a login shell (ssh) and to those who do not (kubectl exec, docker
// exec, ip netns exec).
std::vector<std::string> rsh_command(const Target&);

}  // namespace corro::launcher
