#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "launcher/agent/protocol.h"

namespace corro::launcher {

// One host's agent, as the launcher sees it: messages go down and come up.
//
// Ends once, when no process of it is left and all that it said has been heard; then nothing more
// comes.  Owned by the fleet.  Not to be destroyed inside its own events.
class Session {
 public:
  struct Events {
    std::function<void(const agent::Up&, std::uint64_t seq)> on_message;
    std::function<void(const std::string& why)> on_end;
  };

  virtual ~Session() = default;

  virtual void send(const agent::Down&) = 0;

  // Waits a moment for what was sent to be on its way.
  virtual void flush() = 0;

  // Ends the session, and with it all processes that descend from it.
  virtual void terminate() = 0;
};

}  // namespace corro::launcher
