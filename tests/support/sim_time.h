#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace corro::test {

// All chance in a simulated world comes from one of these, and that from one seed.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {  // splitmix64
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  Duration within(Duration most) {
    return Duration(static_cast<Duration::rep>(below(static_cast<std::size_t>(most.count()) + 1)));
  }

 private:
  std::uint64_t state_;
};

// Virtual time.  What is to happen next happens when all that comes before it has; two things at
// the same moment happen in the order in which they were planned.
class Timeline {
 public:
  using Fn = std::function<void()>;

  TimePoint now() const { return now_; }

  void at(TimePoint when, Fn fn) {
    plan_.emplace(std::pair(std::max(when, now_), ++planned_), std::move(fn));
  }
  void after(Duration wait, Fn fn) { at(now_ + wait, std::move(fn)); }

  // Until nothing is planned any more.
  void run() {
    while (!plan_.empty()) {
      auto next = plan_.extract(plan_.begin());
      now_ = next.key().first;
      next.mapped()();
    }
  }

  // Every fact that is noted, and when, goes into the digest: two worlds with the same one have
  // gone the same way.
  void note(std::string_view what, std::uint64_t detail) {
    mix(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
    for (const char c : what) mix(static_cast<std::uint8_t>(c));
    mix(detail);
  }
  std::uint64_t digest() const { return digest_; }

 private:
  void mix(std::uint64_t value) { digest_ = (digest_ ^ value) * 0x100000001b3; }

  TimePoint now_{};
  std::uint64_t planned_ = 0;
  std::map<std::pair<TimePoint, std::uint64_t>, Fn> plan_;
  std::uint64_t digest_ = 0xcbf29ce484222325;
};

}  // namespace corro::test
