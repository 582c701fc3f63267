#pragma once

#include <memory>
#include <string>

#include "launcher/pipe/pipe.h"
#include "launcher/pipe/reach_result.h"
#include "launcher/pipe/wire.h"

namespace corro::launcher {

// A host that was reached: at the end of the wire is a shell that reads its input, or, with
// `forward_to`, what listens there.
struct Way {
  std::unique_ptr<Wire> wire;
  agent::Reached reached;
  std::string name;            // for people: "h1 (10.0.0.1 port 22)"
  std::string by_hand;         // a command that goes the same way: "ssh -p 2222 h1"
  bool is_by_command = false;  // of the user's
};

ReachResult<Way> ssh_way(const Target&);
ReachResult<Way> rsh_way(const Target&);

// Microseconds since then, for Reached.
inline std::uint32_t microseconds_since(TimePoint then) {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - then).count());
}

}  // namespace corro::launcher
