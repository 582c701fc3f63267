#include "launcher/agent/shutdown.h"

#include <catch2/catch.hpp>

namespace corro::launcher::agent {

using namespace std::chrono_literals;

namespace {

constexpr TimePoint kStart = TimePoint(1h);

}  // namespace

TEST_CASE("a shutdown that has not begun is never over") {
  const Shutdown shutdown;
  CHECK_FALSE(shutdown.has_begun());
  CHECK(shutdown.kill_at() == std::nullopt);
  CHECK_FALSE(shutdown.is_over(false, kStart));
}

TEST_CASE("workers that are told to end have their grace, and no more") {
  Shutdown shutdown;
  CHECK(shutdown.begin(5s, kStart));
  CHECK(shutdown.has_begun());
  CHECK(shutdown.kill_at() == kStart + 5s);
  CHECK_FALSE(shutdown.is_over(true, kStart + 5s - 1ns));
  CHECK(shutdown.is_over(true, kStart + 5s));
}

TEST_CASE("a shutdown is over as soon as no worker runs") {
  Shutdown shutdown;
  CHECK(shutdown.begin(5s, kStart));
  CHECK(shutdown.is_over(false, kStart));
}

TEST_CASE("a shutdown without grace is over at once") {
  Shutdown shutdown;
  CHECK(shutdown.begin(0s, kStart));
  CHECK(shutdown.is_over(true, kStart));
}

TEST_CASE("a second reason makes a shutdown quicker, never slower") {
  Shutdown shutdown;
  CHECK(shutdown.begin(5s, kStart));
  CHECK_FALSE(shutdown.begin(5s, kStart + 3s));
  CHECK(shutdown.kill_at() == kStart + 5s);
  CHECK_FALSE(shutdown.begin(1s, kStart + 3s));
  CHECK(shutdown.kill_at() == kStart + 4s);
  CHECK_FALSE(shutdown.begin(0s, kStart + 3s));
  CHECK(shutdown.is_over(true, kStart + 3s));
}

}  // namespace corro::launcher::agent
