#pragma once

#include <optional>
#include <string>

#include "tests/sim/seeds.h"
#include "tests/sim/world.h"

namespace corro::runtime {

// A seed's weather and calls, before anything else happens.
inline Scenario calm(std::uint64_t seed) {
  using namespace std::chrono_literals;
  test::Chance chance(seed ^ 0x6b6f6c6f);
  Scenario scenario{.seed = seed, .size = test::size_of_world(seed)};
  scenario.weather.delay = chance.one_in(3) ? 20us : 2ms;
  // Byte by byte costs an event for each, so only small worlds have it as bad as that.
  const bool foul = scenario.size <= 9 && chance.one_in(2);
  scenario.weather.piece = foul ? 1 + chance.below(8) : 40 + chance.below(400);
  scenario.weather.window = foul ? 1 + chance.below(50) : 60 + chance.below(4000);
  return scenario;
}

// The same world, in which some die at any moment of what would have been its time.
inline Scenario deadly(std::uint64_t seed, int deaths) {
  Scenario scenario = calm(seed);
  World undisturbed(scenario);
  undisturbed.play();
  test::Chance chance(seed ^ 0x64656164);
  for (int i = 0; i < deaths; ++i)
    scenario.deaths.push_back(
        {static_cast<int>(chance.below(static_cast<std::size_t>(scenario.size))),
         chance.within(undisturbed.duration()), chance.one_in(2)});
  return scenario;
}

inline std::optional<std::string> complaint(const Scenario& scenario) {
  World world(scenario);
  world.play();
  return world.complaint();
}

}  // namespace corro::runtime
