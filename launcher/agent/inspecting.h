#pragma once

#include <functional>
#include <optional>

#include "base/loop.h"
#include "launcher/agent/protocol.h"
#include "launcher/machine/errand.h"

namespace corro::launcher::agent {

// One Inspect under way, in a process of its own, while the agent goes on.  Answers once, from the
// loop that it belongs to; not when it is destroyed before.
class Inspecting {
 public:
  Inspecting(Loop&, const Inspect&, std::function<void(const Inspected&)> answer);

 private:
  void look();
  void answer(Inspection);

  const std::function<void(const Inspected&)> answer_;
  const std::int64_t asked_us_;
  std::optional<Errand> errand_;
  Loop::Watch watch_;
  Loop::Timer end_;
};

}  // namespace corro::launcher::agent
