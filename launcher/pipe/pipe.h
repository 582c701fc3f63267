#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace corro::launcher {

// What becomes of a host key that nobody has seen before.  A key that has changed always ends the
// matter.  `from_config`: what StrictHostKeyChecking in the user's ssh configuration says.
enum class HostKeyPolicy { from_config, strict, accept_new };

// Horovod's.
inline constexpr Duration kConnectTimeout = std::chrono::seconds(10);
inline constexpr Duration kNoLimit = std::chrono::hours(24);

// A host, and how it is reached.  What is left empty is as ~/.ssh/config says.
struct Target {
  std::string host, user;
  int port = 0;
  std::vector<std::string> identities;
  HostKeyPolicy policy = HostKeyPolicy::from_config;
  std::vector<std::string> rsh_agent;          // a command in libssh's place; see rsh_command
  Duration connect_timeout = kConnectTimeout;  // unless ~/.ssh/config has one,
  Duration connect_limit = kNoLimit;           // which counts up to this
  std::string self;                            // the program to run there; empty: this one
  std::string jump;                            // as after ProxyJump
  std::string forward_to;  // "host:port": bytes are carried there, and no agent is started
  bool operator==(const Target&) const = default;
};

// What follows the program's name.  Times have milliseconds.
std::vector<std::string> pipe_arguments(const Target&);
Result<Target> parse_pipe_arguments(std::span<const std::string>);

// `horovodrun --ssh-pipe …` and `--rsh-pipe …`: reaches the host, starts its agent, bringing this
// program along if need be, and carries frames between it and our stdin and stdout.  Says Reached
// or Unreached first.  Returns when either side has ended; the launcher's death is one.
int run_pipe(const Target&);

}  // namespace corro::launcher
