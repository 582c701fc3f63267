#include "runtime/pattern/choose.h"

#include <rapidcheck/catch.h>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "tests/unit/runtime/pattern/worlds.h"

using namespace corro::runtime;
using namespace corro::runtime::test;

namespace {

constexpr Costs kTcp;

std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds;
  for (int i = 0; i <= static_cast<int>(last_of(Kind{})); ++i)
    kinds.push_back(static_cast<Kind>(i));
  return kinds;
}

std::vector<std::uint64_t> even_parts(std::uint64_t count, int ranks) {
  std::vector<std::uint64_t> parts;
  for (int i = 0; i < ranks; ++i) parts.push_back(part_of(count, ranks, i).size());
  return parts;
}

// `count` f32 elements, in even parts where there are parts.
Shape shape_of(Kind kind, std::uint64_t count, int ranks) {
  Shape shape{.kind = kind, .type = DataType::f32, .root = ranks / 2};
  if (kind != Kind::alltoall && kind != Kind::barrier) shape.count = count;
  if (kind == Kind::allgather || kind == Kind::reducescatter)
    shape.parts = even_parts(count, ranks);
  return shape;
}

Operation operation_of(const Shape& shape, int ranks) {
  Operation op{shape};
  if (shape.kind == Kind::alltoall)
    op.sends = op.receives = std::vector<std::uint64_t>(static_cast<std::size_t>(ranks), 2);
  return op;
}

Interpreter::Make maker(Algorithm algorithm, const Operation& op, int ranks) {
  return [=](int rank) { return make_schedule(algorithm, op, rank, ranks); };
}

Outcome play(Algorithm algorithm, const Operation& op, int ranks) {
  const auto make = maker(algorithm, op, ranks);
  switch (op.shape.kind) {
    case Kind::allreduce:
      return play_allreduce(ranks, op.shape.count, make, {});
    case Kind::allgather:
      return play_allgather(op.shape.parts, make, {});
    case Kind::broadcast:
      return play_broadcast(ranks, op.shape.root, op.shape.count, make, {});
    case Kind::alltoall:
      return play_alltoall(Splits(static_cast<std::size_t>(ranks), op.sends), make, {});
    case Kind::reducescatter:
      return play_reducescatter(op.shape.parts, make, {});
    case Kind::barrier:
      break;
  }
  return play_barrier(ranks, make, {});
}

// What the schedules themselves say: of each step the largest message and reduction.
struct Measured {
  double steps = 0, bytes = 0, reduced_bytes = 0;
  std::uint64_t scratch_bytes = 0;
};

Measured measure(Algorithm algorithm, const Operation& op, int ranks) {
  Measured measured;
  std::vector<std::unique_ptr<Schedule>> schedules;
  const std::size_t element = size_of(op.shape.type);
  for (int rank = 0; rank < ranks; ++rank) {
    schedules.push_back(make_schedule(algorithm, op, rank, ranks));
    measured.scratch_bytes =
        std::max<std::uint64_t>(measured.scratch_bytes, schedules.back()->scratch() * element);
  }
  measured.steps = schedules[0]->steps();
  for (int k = 0; k < schedules[0]->steps(); ++k) {
    std::size_t sent = 0, reduced = 0;
    for (const auto& schedule : schedules) {
      const Step step = schedule->step(k);
      sent = std::max(sent, step.send.range.size());
      if (step.act != Act::copy) reduced = std::max(reduced, step.recv.range.size());
    }
    measured.bytes += static_cast<double>(sent * element);
    measured.reduced_bytes += static_cast<double>(reduced * element);
  }
  return measured;
}

Algorithm chosen(Kind kind, std::uint64_t count, int ranks, const Costs& costs = kTcp) {
  return choose(shape_of(kind, count, ranks), ranks, costs);
}

std::vector<Algorithm> sequence(Kind kind, int ranks, const Costs& costs = kTcp) {
  std::vector<Algorithm> algorithms;
  for (const Choice& choice : choices(kind, ranks, costs)) algorithms.push_back(choice.algorithm);
  return algorithms;
}

}  // namespace

TEST_CASE("names of algorithms and collectives are read as they are written") {
  for (int i = 0; i <= static_cast<int>(last_of(Algorithm{})); ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    CHECK(algorithm_named(name_of(algorithm)) == algorithm);
    CHECK(std::ranges::any_of(all_kinds(), [&](Kind kind) { return can_do(algorithm, kind); }));
  }
  for (const Kind kind : all_kinds()) CHECK(kind_named(name_of(kind)) == kind);
  CHECK(algorithm_named("") == std::nullopt);
  CHECK(kind_named("allreduce ") == std::nullopt);
}

TEST_CASE("every algorithm of every collective does what the collective should") {
  for (const Kind kind : all_kinds())
    for (const Algorithm algorithm : algorithms_for(kind))
      for (int ranks = 1; ranks <= 17; ++ranks) {
        INFO(name_of(kind) << " by " << name_of(algorithm) << ", " << ranks << " ranks");
        const Operation op = operation_of(shape_of(kind, 23, ranks), ranks);
        REQUIRE(play(algorithm, op, ranks).failure == "");
      }
}

TEST_CASE("the model counts the steps, bytes and scratch of the schedules") {
  for (const Kind kind : all_kinds())
    for (const Algorithm algorithm : algorithms_for(kind))
      for (int ranks = 1; ranks <= 64; ++ranks) {
        INFO(name_of(kind) << " by " << name_of(algorithm) << ", " << ranks << " ranks");
        // Divisible by all numbers of ranks up to 12 and all powers of two, in many chunks.
        const std::uint64_t count = 27720 * 64;
        const Operation op = operation_of(shape_of(kind, count, ranks), ranks);
        const Work model = work(algorithm, op.shape, ranks, kTcp);
        const Measured measured = measure(algorithm, op, ranks);
        CHECK(model.steps == measured.steps);
        CHECK(scratch_bytes(algorithm, op.shape, ranks) == measured.scratch_bytes);
        if (kind == Kind::alltoall) continue;
        const bool exact =
            std::has_single_bit(static_cast<unsigned>(ranks)) && algorithm != Algorithm::chain;
        const double slack = exact ? 0 : 8.0 * ranks;  // parts that differ by one element
        CHECK(model.bytes + slack >= measured.bytes);
        CHECK(model.reduced_bytes + slack >= measured.reduced_bytes);
        CHECK(model.bytes <= (exact ? measured.bytes : 1.5 * measured.bytes + slack));
        CHECK(model.reduced_bytes <=
              (exact ? measured.reduced_bytes : 1.5 * measured.reduced_bytes + slack));
      }
}

TEST_CASE("the estimate is what steps, bytes and reductions cost") {
  const Costs costs{
      .latency_s = 1, .seconds_per_byte = 10, .reduce_seconds_per_byte = 100, .distant_factor = 2};
  const Shape shape = shape_of(Kind::allreduce, 4, 4);  // 16 bytes
  CHECK(estimate(Algorithm::ring, shape, 4, costs) == 6 + 24 * 10 + 12 * 100);
  CHECK(estimate(Algorithm::halving_doubling, shape, 4, costs) == 4 + 24 * 20 + 12 * 100);
  CHECK(estimate(Algorithm::recursive_doubling, shape, 4, costs) == 2 + 32 * 20 + 32 * 100);
  CHECK(estimate(Algorithm::recursive_doubling, shape, 1, costs) == 0);
}

TEST_CASE("small tensors take few steps, large ones few bytes") {
  using enum Algorithm;
  CHECK(chosen(Kind::allreduce, 1, 2) == recursive_doubling);
  CHECK(chosen(Kind::allreduce, 1, 64) == recursive_doubling);
  CHECK(chosen(Kind::allreduce, 64 << 20, 2) == ring);
  CHECK(chosen(Kind::allreduce, 64 << 20, 3) == ring);
  CHECK(chosen(Kind::allreduce, 64 << 20, 64) == ring);
  CHECK(sequence(Kind::allreduce, 8) == std::vector{recursive_doubling, halving_doubling, ring});
  CHECK(sequence(Kind::broadcast, 2) == std::vector{tree});
  CHECK(sequence(Kind::broadcast, 8) == std::vector{tree, chain});
  CHECK(sequence(Kind::allgather, 8) == std::vector{recursive_doubling, ring});
  CHECK(sequence(Kind::reducescatter, 8).front() == recursive_halving);
  CHECK(sequence(Kind::alltoall, 8) == std::vector{pairwise});
  CHECK(sequence(Kind::barrier, 8) == std::vector{dissemination});
}

TEST_CASE("as tensors grow, no algorithm comes back that was left, in any world") {
  for (const Kind kind : all_kinds())
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 48, 63, 64, 100, 1000}) {
      const auto algorithms = sequence(kind, ranks);
      INFO(name_of(kind) << ", " << ranks << " ranks\n" << explain(ranks, kTcp));
      CHECK(std::set(algorithms.begin(), algorithms.end()).size() == algorithms.size());
    }
}

TEST_CASE("the choice has about the least estimate of those with little enough scratch") {
  rc::prop("for any costs", [] {
    const auto decades = [](int from, int to) {
      return rc::gen::map(rc::gen::inRange(from * 10, to * 10),
                          [](int tenths) { return std::pow(10.0, tenths / 10.0); });
    };
    const Costs costs{.latency_s = *decades(-7, -2),
                      .seconds_per_byte = *decades(-11, -7),
                      .reduce_seconds_per_byte = *decades(-12, -8),
                      .distant_factor = *decades(0, 1),
                      .most_scratch_bytes = *rc::gen::inRange<std::size_t>(0, 1 << 20)};
    const int ranks = *rc::gen::inRange(1, 100);
    const auto kind = *rc::gen::elementOf(all_kinds());
    const Shape shape = shape_of(kind, *rc::gen::inRange<std::uint64_t>(0, 1 << 22), ranks);
    const Algorithm best = choose(shape, ranks, costs);
    RC_ASSERT(can_do(best, kind));
    RC_ASSERT(scratch_bytes(best, shape, ranks) <= costs.most_scratch_bytes);
    for (const Algorithm other : algorithms_for(kind))
      if (scratch_bytes(other, shape, ranks) <= costs.most_scratch_bytes)
        RC_ASSERT(estimate(best, shape, ranks, costs) * 0.98 <=
                  estimate(other, shape, ranks, costs));
  });
}

TEST_CASE("large tensors of any shape need no scratch beyond the limit") {
  for (const Kind kind : all_kinds())
    for (int ranks = 1; ranks <= 64; ++ranks) {
      const Shape shape = shape_of(kind, std::uint64_t{1} << 32, ranks);
      CHECK(scratch_bytes(choose(shape, ranks, kTcp), shape, ranks) <= kTcp.most_scratch_bytes);
    }
}

TEST_CASE("a part that is nearly everything does not go round the ring") {
  Shape shape = shape_of(Kind::allgather, 64 << 20, 8);
  CHECK(choose(shape, 8, kTcp) == Algorithm::ring);
  shape.parts.assign(8, 0);
  shape.parts[3] = shape.count;
  CHECK(choose(shape, 8, kTcp) == Algorithm::recursive_doubling);
}

TEST_CASE("the user's choice is taken, whatever it costs") {
  for (const Kind kind : all_kinds())
    for (const Algorithm algorithm : algorithms_for(kind)) {
      const auto overrides =
          Overrides::parse(std::string(name_of(kind)) + "=" + std::string(name_of(algorithm)));
      REQUIRE(overrides);
      for (const std::uint64_t count : {0, 1, 1 << 20, 1 << 30})
        CHECK(choose(shape_of(kind, count, 6), 6, kTcp, *overrides) == algorithm);
      const auto all = choices(kind, 6, kTcp, *overrides);
      REQUIRE(all.size() == 1);
      CHECK(all[0].by_user);
    }
}

TEST_CASE("chunks of the chain are few enough and small enough") {
  const auto chunk = [](std::uint64_t count, int ranks) {
    return chain_chunk(shape_of(Kind::broadcast, count, ranks), ranks, kTcp);
  };
  CHECK(chunk(0, 4) == 1);
  CHECK(chunk(100, 4) == 100);
  CHECK(chunk(1 << 24, 2) == 1 << 24);  // to one rank: nothing to overlap
  for (int ranks = 3; ranks <= 64; ++ranks) {
    CHECK(chunk(1 << 24, ranks) >= 4096);
    CHECK(chunk(1 << 24, ranks) <= 1 << 23);
  }
  // Neither twice nor half the chunk is better by much.
  const Shape shape = shape_of(Kind::broadcast, 1 << 24, 8);
  const auto seconds = [&](double bytes) {
    return (std::ceil(double(1 << 26) / bytes) + 6) *
           (kTcp.latency_s + bytes * kTcp.seconds_per_byte);
  };
  const double best = 4.0 * static_cast<double>(chain_chunk(shape, 8, kTcp));
  CHECK(seconds(best) < seconds(best * 2));
  CHECK(seconds(best) < seconds(best / 2));
}

TEST_CASE("choices begin where they say") {
  const auto overrides = Overrides::parse("allreduce:<1000=ring,allreduce:>=3M=halving_doubling");
  REQUIRE(overrides);
  for (const int ranks : {2, 5, 8, 64}) {
    const auto all = choices(Kind::allreduce, ranks, kTcp, *overrides);
    REQUIRE(all.size() >= 3);
    CHECK(all[0].from == 0);
    CHECK(all[1].from == 1000);
    CHECK(all.back().from == 3 << 20);
    for (const Choice& choice : all) {
      Shape shape{.kind = Kind::allreduce, .type = DataType::u8, .count = choice.from};
      CHECK(choose(shape, ranks, kTcp, *overrides) == choice.algorithm);
      if (shape.count-- == 0 || &choice == &all[1] || &choice == &all.back()) continue;
      CHECK(choose(shape, ranks, kTcp, *overrides) != choice.algorithm);
    }
  }
}

TEST_CASE("the table says which algorithm does which sizes") {
  const auto overrides = Overrides::parse("broadcast:<1M=tree");
  REQUIRE(overrides);
  CHECK(explain(8, kTcp, *overrides) ==
        "algorithms for 8 ranks: 30 µs a step, 1.25 GB/s sent, 10 GB/s reduced\n"
        "  allreduce     from 0             recursive_doubling      90 µs\n"
        "                from 66377         halving_doubling       288 µs\n"
        "                from 1522519       ring                  2.68 ms\n"
        "  allgather     from 0             recursive_doubling      90 µs\n"
        "                from 1531169       ring                  1.28 ms\n"
        "  broadcast     from 0             tree                    90 µs  (override)\n"
        "                from 1M            chain                 1.89 ms\n"
        "  alltoall      from 0             pairwise               210 µs\n"
        "  reducescatter from 0             recursive_halving       90 µs\n"
        "                from 1513961       ring                   1.4 ms\n"
        "                from 33554433      pairwise                29 ms\n"
        "  barrier       from 0             dissemination           90 µs\n");
}
