#pragma once

#include <algorithm>
#include <optional>

#include "base/time.h"

namespace corro::launcher::agent {

// How an agent ends its workers: SIGTERM at once, SIGKILL to those that are left when their grace
// is over.  It is never undone; a second reason to end can only make it quicker.
//
// Sans-IO: the agent sends the signals.
class Shutdown {
 public:
  // Whether it begins with this reason.
  [[nodiscard]] bool begin(Duration grace, TimePoint now) {
    const bool first = !kill_at_;
    kill_at_ = std::min(kill_at_.value_or(TimePoint::max()), now + grace);
    return first;
  }

  bool has_begun() const { return kill_at_.has_value(); }
  // When the grace is over; none before it has begun.
  std::optional<TimePoint> kill_at() const { return kill_at_; }

  // Whether the agent is to kill what is left, and to go.
  bool is_over(bool any_worker_runs, TimePoint now) const {
    return kill_at_ && (!any_worker_runs || now >= *kill_at_);
  }

 private:
  std::optional<TimePoint> kill_at_;
};

}  // namespace corro::launcher::agent
