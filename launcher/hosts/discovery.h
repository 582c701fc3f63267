#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"

namespace corro::launcher {

// What a discovery script prints: a line for each host.  The script is a command for the shell, as
// Horovod has it; what it writes to stderr is seen by the user.  When the deadline passes, it and
// what it has started are killed.
Result<std::string> run_discovery_script(const std::string& script, Deadline);

}  // namespace corro::launcher
