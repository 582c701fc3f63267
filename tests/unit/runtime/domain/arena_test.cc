#include "runtime/domain/arena.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <random>

#include "runtime/domain/stream.h"

using namespace corro::runtime;

TEST_CASE("what is taken does not overlap, is aligned, and all of it comes back as one") {
  std::minstd_rand random(3);
  const std::size_t size = std::size_t{64} << 20;
  FreeList list(size);
  std::map<std::size_t, std::size_t> taken;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 || taken.empty()) {
      const std::size_t bytes = random() % 8 == 0 ? (2 << 20) + random() % 100 : random() % 5000;
      const auto at = list.take(bytes);
      if (!at) continue;
      CHECK(*at % (bytes >= 2 << 20 ? 2 << 20 : 64) == 0);
      CHECK(*at + bytes <= size);
      const auto after = taken.lower_bound(*at);
      if (after != taken.end()) CHECK(after->first >= *at + bytes);
      if (after != taken.begin()) CHECK(std::prev(after)->second <= *at);
      taken[*at] = *at + bytes;
    } else {
      const auto it = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
      CHECK(list.give_back(it->first));
      CHECK(!list.give_back(it->first));
      taken.erase(it);
    }
  }
  for (const auto& [at, end] : taken) CHECK(list.give_back(at));
  CHECK(list.used() == 0);
  CHECK(list.take(size) == 0U);
  CHECK(!list.take(1));
  CHECK(!list.take(~std::size_t{0}));
}

TEST_CASE("an arena knows which buffers lie in it") {
  auto arena = Arena::create(4 << 20);
  REQUIRE(arena);
  auto* a = static_cast<std::uint8_t*>((*arena)->allocate(1000));
  auto* b = static_cast<std::uint8_t*>((*arena)->allocate(1000));
  CHECK((*arena)->offset_of(a, 1000) == 0U);
  CHECK((*arena)->offset_of(b, 1000) == 1024U);
  CHECK(!(*arena)->offset_of(b, 4 << 20));
  int elsewhere = 0;
  CHECK(!(*arena)->offset_of(&elsewhere, 4));
  CHECK(!(*arena)->release(&elsewhere));
  CHECK((*arena)->release(a));
  CHECK(!(*arena)->release(b + 1));
  CHECK((*arena)->allocate(500) == a);
  CHECK((*arena)->allocate(64 << 20) == nullptr);
}

TEST_CASE("a streamed copy is a copy, at every alignment and length") {
  std::vector<std::uint8_t> from(1000), to(1000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 37);
  for (std::size_t in = 0; in < 3; ++in)
    for (std::size_t out = 0; out < 70; ++out)
      for (const std::size_t bytes : {0, 1, 63, 64, 65, 127, 128, 300, 777}) {
        std::fill(to.begin(), to.end(), std::uint8_t{0});
        stream_copy(to.data() + out, from.data() + in, bytes);
        stream_fence();
        REQUIRE(std::memcmp(to.data() + out, from.data() + in, bytes) == 0);
        REQUIRE((out == 0 || to[out - 1] == 0));
        REQUIRE(to[out + bytes] == 0);
      }
}
