#pragma once

#include <set>
#include <string>
#include <vector>

#include "launcher/hosts/hosts.h"
#include "launcher/pipe/pipe.h"
#include "launcher/session/process_session.h"

namespace corro::launcher {

// How hosts that are not this machine are reached.
struct Reach {
  int ssh_port = 0;                     // 0: as ~/.ssh/config says
  std::vector<std::string> identities;  // files with private keys; none: the same
  HostKeyPolicy host_keys = HostKeyPolicy::from_config;
  std::vector<std::string> rsh_agent;  // a command in the built-in ssh's place
  int at_once = 64;                    // logins that are under way at the same time
  bool remembers = true;               // for an hour who reached whom
  bool operator==(const Reach&) const = default;
};

// Whether -p and -i mean something to whoever goes there: the built-in ssh, or ssh.
bool takes_ssh_options(const Reach&);

// Pure.  What becomes a host's agent: `self` here, or a pipe to it, which is to say why it did not
// get there before `patience` ends.
Command agent_command(const std::string& self, const HostSpec&, const Reach&, bool here,
                      Duration patience);

}  // namespace corro::launcher
