#include <catch2/catch.hpp>

#include "tests/sim/seeds.h"
#include "tests/sim/store_world.h"

using namespace corro::rendezvous;
using namespace corro::test;

namespace {

StoreWorld played(std::uint64_t seed, int vanishing) {
  StoreWorld world(seed, size_of_world(seed), std::min(vanishing, size_of_world(seed)));
  world.play();
  return world;
}

}  // namespace

TEST_CASE("whatever order its clients are heard in, the store keeps its promises") {
  for_every_world(30, [](std::uint64_t seed) { return played(seed, 0).complaint(); });
}

TEST_CASE("whoever vanishes, and whenever, the store keeps its promises to the rest") {
  for_every_world(30, [](std::uint64_t seed) {
    return played(seed, 1 + static_cast<int>(seed % 4)).complaint();
  });
}

TEST_CASE("who vanishes early is missed by the rest") {
  int missed = 0;
  for (std::uint64_t seed = 5; seed < 25; ++seed) missed += played(seed, 2).gatherings_missed();
  CHECK(missed > 20);
}

TEST_CASE("the same seed tells the store's same story") {
  CHECK(played(20, 2).digest() == played(20, 2).digest());
  CHECK(played(20, 2).digest() != played(53, 2).digest());
}
