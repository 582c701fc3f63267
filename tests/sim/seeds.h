#pragma once

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>

namespace corro::test {

inline constexpr int kLargestWorld = 33;

// A seed is all there is to a simulated world, its size included: seeds follow one another through
// the sizes 1 to 33.
inline int size_of_world(std::uint64_t seed) {
  return 1 + static_cast<int>(seed % kLargestWorld);
}

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* value = std::getenv(variable);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

// Plays every size `rounds` times (times CORRO_SIM_ROUNDS, for a long night), or only the seed that
// CORRO_SIM_SEED names.  `play` gives the first promise that does not hold in the seed's world.
template <class Play>
void for_every_world(std::uint64_t rounds, Play play) {
  const bool replay = std::getenv("CORRO_SIM_SEED") != nullptr;
  const std::uint64_t worlds = rounds * number_from("CORRO_SIM_ROUNDS", 1) * kLargestWorld;
  const std::uint64_t first = number_from("CORRO_SIM_SEED", 0), end = replay ? first + 1 : worlds;
  for (std::uint64_t seed = first; seed < end; ++seed)
    if (const std::optional<std::string> complaint = play(seed))
      FAIL(fmt::format("{} ranks: {}; replay with CORRO_SIM_SEED={}", size_of_world(seed),
                       *complaint, seed));
  SUCCEED();
}

}  // namespace corro::test
