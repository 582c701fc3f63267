#include "base/lease.h"

#include <catch2/catch.hpp>

namespace corro {

using namespace std::chrono_literals;

namespace {

constexpr TimePoint kStart = TimePoint(1h);

// Checks as an owner does: at each wake() until then.  When it expired, if it did.
std::optional<Duration> expiry_until(Lease& lease, TimePoint end) {
  while (lease.wake() && *lease.wake() <= end) {
    const TimePoint now = *lease.wake();
    if (lease.check(now)) return now - kStart;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a peer that is heard every second is never given up") {
  Lease lease(5s, kStart);
  for (TimePoint now = kStart; now < kStart + 60s; now += 1s) {
    lease.heard(now);
    CHECK_FALSE(expiry_until(lease, now + 999ms));
  }
}

TEST_CASE("a silent peer is given up at the second look") {
  Lease lease(5s, kStart);
  CHECK(lease.wake() == kStart + 5s);
  CHECK_FALSE(lease.check(kStart + 5s - 1ns));
  CHECK_FALSE(lease.check(kStart + 5s));
  CHECK(lease.wake() == kStart + 5s + Lease::kSecondLook);
  CHECK_FALSE(lease.check(kStart + 5s + Lease::kSecondLook - 1ns));
  CHECK(lease.check(kStart + 5s + Lease::kSecondLook));
}

TEST_CASE("a process that was stopped itself reads what the peer has sent before it gives it up") {
  Lease lease(5s, kStart);
  const TimePoint awake = kStart + 40s;  // nobody could check before
  CHECK_FALSE(lease.check(awake));
  lease.heard(awake + 1ms);
  CHECK_FALSE(lease.check(awake + Lease::kSecondLook));
  CHECK(lease.wake() == awake + 1ms + 5s);
}

TEST_CASE("each silence has two looks of its own") {
  Lease lease(5s, kStart);
  CHECK_FALSE(lease.check(kStart + 5s));
  lease.heard(kStart + 5s + 1ms);
  CHECK(expiry_until(lease, kStart + 60s) == 10s + 1ms + Lease::kSecondLook);
}

TEST_CASE("a peer that is known to be stopped may be silent for ever") {
  Lease lease(5s, kStart);
  lease.pause();
  CHECK(lease.wake() == std::nullopt);
  CHECK_FALSE(lease.check(kStart + 24h));
  lease.resume(kStart + 24h);
  CHECK(expiry_until(lease, kStart + 25h) == 24h + 5s + Lease::kSecondLook);
}

TEST_CASE("a lease may be shortened when the peer has said its first word") {
  Lease lease(30s, kStart);
  lease.heard(kStart + 1s);
  lease.set_length(2s);
  CHECK(lease.wake() == kStart + 3s);
  CHECK(expiry_until(lease, kStart + 60s) == 3s + Lease::kSecondLook);
}

}  // namespace corro
