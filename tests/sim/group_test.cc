#include <catch2/catch.hpp>

#include "tests/sim/scenarios.h"
#include "tests/sim/seeds.h"

using namespace corro;
using namespace corro::runtime;
using namespace corro::test;

TEST_CASE("in any weather every schedule gives every rank the same, correct values") {
  for_every_world(4, [](std::uint64_t seed) { return complaint(calm(seed)); });
}

// In a small world everyone waits for everyone: whoever misses a wake-up is missed by all.
TEST_CASE("through many calls in a small world nobody sleeps through its turn") {
  for_every_world(3, [](std::uint64_t seed) {
    Scenario scenario = calm(seed);
    scenario.size = 2 + scenario.size % 4;
    scenario.calls = 25;
    return complaint(scenario);
  });
}

TEST_CASE("when a rank dies, every survivor that needs it says who, at once") {
  for_every_world(3, [](std::uint64_t seed) { return complaint(deadly(seed, 1)); });
}

TEST_CASE("when several ranks die, every survivor names the first") {
  for_every_world(2, [](std::uint64_t seed) { return complaint(deadly(seed, 3)); });
}

TEST_CASE(
    "without a word from the launcher, survivors still find out who died and tell each other") {
  for_every_world(3, [](std::uint64_t seed) {
    Scenario scenario = deadly(seed, 1);
    scenario.launcher_tells = false;
    return complaint(scenario);
  });
}
