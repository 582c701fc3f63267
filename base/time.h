#pragma once

#include <algorithm>
#include <chrono>

namespace corro {

using Clock = std::chrono::steady_clock;
using Duration = Clock::duration;
using TimePoint = Clock::time_point;

// The moment after which nobody waits any longer.  Every wait has one.
struct Deadline {
  TimePoint at;

  static Deadline in(Duration d) { return {Clock::now() + d}; }

  bool passed() const { return Clock::now() >= at; }

  // For poll(2): rounded up, so that a wait never ends just before its deadline.
  int poll_timeout_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 1 << 30));
  }
};

}  // namespace corro
