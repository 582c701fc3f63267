#pragma once

#include <chrono>
#include <optional>

#include "base/time.h"

namespace corro {

// What two processes agree on: each is heard at least once in `length`, because one of them sends
// a message every `renewal` that the other answers.
struct LeaseTerms {
  Duration length = std::chrono::seconds(5);
  Duration renewal = std::chrono::seconds(1);
};

// Decides when a silent peer is given up.  Sans-IO: the owner calls heard() for every message of
// the peer, and check() when the time of wake() has come.
//
// The lease expires only at a second look, kSecondLook after the first: this process itself may
// have been stopped, and then the messages of the peer are there but not read yet.
class Lease {
 public:
  static constexpr Duration kSecondLook = std::chrono::milliseconds(200);

  Lease(Duration length, TimePoint now) : length_(length), last_heard_(now) {}

  Duration length() const { return length_; }
  void set_length(Duration length) { length_ = length; }

  void heard(TimePoint now) {
    last_heard_ = now;
    first_look_.reset();
  }

  // Between the two the peer is known to be stopped, and its silence counts for nothing.
  void pause() { paused_ = true; }
  void resume(TimePoint now) {
    paused_ = false;
    heard(now);
  }

  // Whether the lease has expired.
  bool check(TimePoint now) {
    if (paused_ || now < last_heard_ + length_) {
      first_look_.reset();
      return false;
    }
    if (!first_look_) first_look_ = now;
    return now >= *first_look_ + kSecondLook;
  }

  // When to check next; none while paused.
  std::optional<TimePoint> wake() const {
    if (paused_) return std::nullopt;
    return first_look_ ? *first_look_ + kSecondLook : last_heard_ + length_;
  }

 private:
  Duration length_;
  TimePoint last_heard_;
  std::optional<TimePoint> first_look_;  // that found the lease expired
  bool paused_ = false;
};

}  // namespace corro
