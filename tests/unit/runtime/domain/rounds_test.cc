#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "runtime/domain/layout.h"
#include "runtime/domain/rounds.h"

using namespace corro::runtime;

namespace {

Shape shape_of(Kind kind, DataType type, std::vector<std::uint64_t> parts) {
  Shape shape;
  shape.kind = kind;
  shape.type = type;
  for (const std::uint64_t part : parts) shape.count += part;
  if (kind == Kind::allgather || kind == Kind::reducescatter) shape.parts = std::move(parts);
  return shape;
}

}  // namespace

TEST_CASE("all slices together are the tensor, once, at places that do not overlap") {
  std::minstd_rand random(1);
  for (int round = 0; round < 3000; ++round) {
    const int members = 1 + static_cast<int>(random() % 40);
    const Layout layout = layout_for(members, 1 + random() % 100'000);
    const Tuning tuning{layout.slot_bytes, random() % (layout.slot_bytes + 1), 4096};
    const Kind kind = std::vector{Kind::allreduce, Kind::reducescatter, Kind::allgather,
                                  Kind::broadcast}[random() % 4];
    std::vector<std::uint64_t> parts(static_cast<std::size_t>(members));
    for (auto& part : parts) part = random() % 3 == 0 ? 0 : random() % 100'000;
    const DataType type = std::vector{DataType::u8, DataType::f16, DataType::f64}[random() % 3];
    const Shape shape = shape_of(kind, type, parts);
    const Plan plan(shape, members, tuning);
    const bool one_source = kind == Kind::broadcast;
    // A whole allreduce is reduced by everyone.
    const int sources = one_source || (kind == Kind::allreduce && plan.whole()) ? 1 : members;
    std::size_t covered = 0;
    bool right = true;  // an assertion for each would take longer than all else
    for (std::uint64_t c = 0; c < plan.chunks(); ++c) {
      std::size_t free_from = 0;
      for (int k = 0; k < sources; ++k) {
        const Range slice = plan.slice(c, k);
        right &= slice.begin <= slice.end;
        right &= slice.end <= plan.total();
        right &= slice.begin % plan.unit() == 0;
        right &= slice.size() % plan.unit() == 0;
        covered += slice.size();
        if (plan.whole() && members == 1) continue;  // nothing is staged
        right &= plan.place(k) + slice.size() <= layout.slot_bytes;
        if (kind == Kind::allreduce && !plan.whole()) right &= slice.size() <= layout.result_bytes;
        if (kind == Kind::allgather || one_source || slice.empty()) continue;
        right &= plan.place(k) >= free_from;
        free_from = plan.place(k) + slice.size();
      }
    }
    REQUIRE(right);
    REQUIRE(covered == plan.total());
  }
}

TEST_CASE("counts beyond 2^31 are cut without wrapping round") {
  const Tuning tuning = tuning_for(8, 2, 512 << 10);
  const Shape shape = shape_of(Kind::allreduce, DataType::f64, {std::uint64_t{5} << 32});
  const Plan plan(shape, 8, tuning);
  CHECK(plan.total() == std::size_t{40} << 32);
  CHECK(plan.slice(plan.chunks() - 1, 7).end == plan.total());
}

TEST_CASE("parts of any proportion end in the same chunk") {
  const Tuning tuning{4096, 0, 0};
  const Plan plan(shape_of(Kind::reducescatter, DataType::u8, {100'000, 10, 0, 50'000}), 4, tuning);
  const std::uint64_t last = plan.chunks() - 1;
  CHECK(!plan.slice(last, 0).empty());
  CHECK(plan.chunks() < 150'010 / 4096 + 5);
}

TEST_CASE("pairs of an all-to-all have room for their counts and a slice each") {
  for (const int members : {1, 2, 9, 256}) {
    const Layout layout = layout_for(members, 4096);
    const PairSlots pairs = PairSlots::of(members, layout.slot_bytes);
    CHECK(pairs.width >= 64);
    CHECK(pairs.place(members) <= layout.slot_bytes);
    CHECK(pairs.chunks(0) == 1);
    CHECK(pairs.chunks(pairs.width + 1) == 2);
    CHECK(pairs.slice(1, pairs.width + 1).size() == 1);
  }
}
