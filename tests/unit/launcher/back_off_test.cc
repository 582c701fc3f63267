#include "launcher/pipe/back_off.h"

#include <rapidcheck/catch.h>

#include <set>

namespace corro::launcher {

using namespace std::chrono_literals;

TEST_CASE("each rest is around twice as long as the one before") {
  rc::prop("for any seed", [](std::uint64_t seed) {
    for (int failed = 1; failed < kAttempts; ++failed) {
      const Duration middle = 200ms * (1 << (failed - 1));
      RC_ASSERT(back_off(failed, seed) >= middle / 2);
      RC_ASSERT(back_off(failed, seed) < middle * 3 / 2);
      RC_ASSERT(back_off(failed, seed) == back_off(failed, seed));
    }
  });
}

TEST_CASE("all rests together leave time within Horovod's ten seconds") {
  rc::prop("for any seed", [](std::uint64_t seed) {
    Duration all{};
    for (int failed = 1; failed < kAttempts; ++failed) all += back_off(failed, seed);
    RC_ASSERT(all < 5s);
  });
}

TEST_CASE("pipes that were turned away together come back one by one") {
  std::set<Duration> rests;
  for (std::uint64_t seed = 0; seed < 64; ++seed) rests.insert(back_off(1, seed) / 1'000'000);
  CHECK(rests.size() > 40);  // different milliseconds
}

}  // namespace corro::launcher
