#include <rapidcheck/catch.h>
#include <bit>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/pattern/chain_broadcast.h"
#include "runtime/pattern/dissemination_barrier.h"
#include "runtime/pattern/halving_doubling_allreduce.h"
#include "runtime/pattern/pairwise_alltoall.h"
#include "runtime/pattern/pairwise_reducescatter.h"
#include "runtime/pattern/recursive_doubling_allgather.h"
#include "runtime/pattern/recursive_doubling_allreduce.h"
#include "runtime/pattern/recursive_halving_reducescatter.h"
#include "runtime/pattern/ring_allgather.h"
#include "runtime/pattern/ring_allreduce.h"
#include "runtime/pattern/ring_reducescatter.h"
#include "runtime/pattern/sequence.h"
#include "runtime/pattern/tree_broadcast.h"
#include "tests/unit/runtime/pattern/worlds.h"

using namespace corro::runtime;
using namespace corro::runtime::test;

namespace {

constexpr int kMostRanks = 64;
using PartSizes = std::vector<std::uint64_t>;

template <class S, class... Args>
Interpreter::Make make(Args... args) {
  return [=](int rank) { return std::make_unique<S>(rank, args...); };
}

template <class S>
Interpreter::Make make_parts(const PartSizes& parts) {
  return [=](int rank) { return std::make_unique<S>(rank, Parts(parts)); };
}

Interpreter::Make make_chain(int ranks, int root, std::size_t count, std::size_t chunk) {
  return [=](int rank) {
    return std::make_unique<Sequence>(
        std::make_unique<DisseminationBarrier>(rank, ranks),
        std::make_unique<ChainBroadcast>(rank, ranks, root, count, chunk));
  };
}

Interpreter::Make make_alltoall(const Splits& splits) {
  return [=](int rank) {
    return std::make_unique<PairwiseAlltoall>(rank, splits[rank], received_by(splits, rank));
  };
}

// Every way to send, in place and not, in another order of events each time.
const std::vector<Play> kPlays = {
    {.in_place = false, .sending = Sending::buffered, .seed = 1},
    {.in_place = true, .sending = Sending::buffered, .seed = 2},
    {.in_place = false, .sending = Sending::rendezvous, .seed = 3},
    {.in_place = true, .sending = Sending::rendezvous, .seed = 4},
};

// All of them in small worlds; in large ones, in place with one way to send and not in place with
// the other.
std::vector<Play> plays_for(int ranks, std::size_t turn) {
  if (ranks <= 16) return kPlays;
  return turn % 2 == 0 ? std::vector{kPlays[0], kPlays[3]} : std::vector{kPlays[1], kPlays[2]};
}

std::vector<std::size_t> counts_for(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  return {0, 1, n - 1, n, n + 1, 5 * n + 3};
}

// Even parts, empty ones, one that has all, and any.
std::vector<PartSizes> parts_for(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  std::mt19937 random(static_cast<unsigned>(ranks));
  PartSizes even(n, 3), none(n, 0), one(n, 0), any(n);
  one[n / 2] = 20;
  for (auto& part : any) part = random() % 4 == 0 ? 0 : random() % 9;
  return {even, none, one, any};
}

Splits splits_for(int ranks, unsigned most) {
  std::mt19937 random(static_cast<unsigned>(ranks) + most);
  Splits splits(static_cast<std::size_t>(ranks), PartSizes(static_cast<std::size_t>(ranks)));
  for (auto& row : splits)
    for (auto& split : row) split = random() % 3 == 0 ? 0 : random() % (most + 1);
  return splits;
}

int log2_up(int n) {
  return std::bit_width(static_cast<unsigned>(n - 1));
}
int log2_down(int n) {
  return std::bit_width(static_cast<unsigned>(n)) - 1;
}
bool is_power_of_two(int n) {
  return std::has_single_bit(static_cast<unsigned>(n));
}

std::size_t most_sent(const Outcome& outcome) {
  return *std::max_element(outcome.elements_sent.begin(), outcome.elements_sent.end());
}

template <class S>
void check_allreduce() {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks)
    for (const std::size_t count : counts_for(ranks))
      for (const Play& play : plays_for(ranks, count))
        REQUIRE(play_allreduce(ranks, count, make<S>(ranks, count), play).failure == "");
}

template <class S>
void check_reducescatter() {
  std::size_t turn = 0;
  for (int ranks = 1; ranks <= kMostRanks; ++ranks)
    for (const auto& parts : parts_for(ranks))
      for (const Play& play : plays_for(ranks, ++turn))
        REQUIRE(play_reducescatter(parts, make_parts<S>(parts), play).failure == "");
}

template <class S>
void check_allgather() {
  std::size_t turn = 0;
  for (int ranks = 1; ranks <= kMostRanks; ++ranks)
    for (const auto& parts : parts_for(ranks))
      for (const Play& play : plays_for(ranks, ++turn))
        REQUIRE(play_allgather(parts, make_parts<S>(parts), play).failure == "");
}

}  // namespace

TEST_CASE("parts are neighbours, cover everything, and differ by one at most") {
  rc::prop("part_of", [] {
    const auto count = *rc::gen::inRange<std::size_t>(0, 1000);
    const auto parts = *rc::gen::inRange(1, 100);
    std::size_t end = 0;
    for (int i = 0; i < parts; ++i) {
      const Range part = part_of(count, parts, i);
      RC_ASSERT(part.begin == end);
      RC_ASSERT(part.size() - count / parts <= 1);
      end = part.end;
    }
    RC_ASSERT(end == count);
  });
}

TEST_CASE("ring allreduce: every world, count, order of events, in place and not") {
  check_allreduce<RingAllreduce>();
}

TEST_CASE("halving-doubling allreduce: every world, count, order of events, in place and not") {
  check_allreduce<HalvingDoublingAllreduce>();
}

TEST_CASE("recursive doubling allreduce: every world, count, order of events, in place and not") {
  check_allreduce<RecursiveDoublingAllreduce>();
}

TEST_CASE("ring reducescatter: every world, uneven and empty parts") {
  check_reducescatter<RingReducescatter>();
}

TEST_CASE("pairwise reducescatter: every world, uneven and empty parts") {
  check_reducescatter<PairwiseReducescatter>();
}

TEST_CASE("recursive halving reducescatter: every world, uneven and empty parts") {
  check_reducescatter<RecursiveHalvingReducescatter>();
}

TEST_CASE("ring allgather: every world, uneven and empty parts") {
  check_allgather<RingAllgather>();
}

TEST_CASE("recursive doubling allgather: every world, uneven and empty parts") {
  check_allgather<RecursiveDoublingAllgather>();
}

TEST_CASE("tree broadcast: every world, root and count") {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks)
    for (int root = 0; root < ranks; ++root) {
      const std::size_t count = (root + ranks) % 3 * 2;
      const auto tree = make<TreeBroadcast>(ranks, root, count);
      for (const Play& play : plays_for(ranks, root))
        REQUIRE(play_broadcast(ranks, root, count, tree, play).failure == "");
    }
}

TEST_CASE("chain broadcast after a barrier: every world and root, any chunk") {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks)
    for (int root = 0; root < ranks; ++root) {
      const std::size_t count = (root * 7) % 12, chunk = 1 + root % 5;
      const auto chain = make_chain(ranks, root, count, chunk);
      for (const Play& play : plays_for(ranks, root))
        REQUIRE(play_broadcast(ranks, root, count, chain, play).failure == "");
    }
}

TEST_CASE("pairwise alltoall: every world, uneven and empty splits") {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks)
    for (const unsigned most : {0U, 1U, 5U})
      for (const Sending sending : {Sending::buffered, Sending::rendezvous}) {
        const Splits splits = splits_for(ranks, most);
        REQUIRE(play_alltoall(splits, make_alltoall(splits), {.sending = sending}).failure == "");
      }
}

TEST_CASE("dissemination barrier: every world") {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks)
    for (const Play& play : kPlays) {
      const auto outcome = play_barrier(ranks, make<DisseminationBarrier>(ranks), play);
      REQUIRE(outcome.failure == "");
      REQUIRE(outcome.steps == log2_up(ranks));
    }
}

TEST_CASE("schedules hold for any count and any order of events") {
  rc::prop("allreduce", [] {
    const int ranks = *rc::gen::inRange(1, 20);
    const auto count = *rc::gen::inRange<std::size_t>(0, 200);
    const Play play{*rc::gen::arbitrary<bool>(), Sending::buffered,
                    *rc::gen::arbitrary<unsigned>()};
    for (const auto& schedule :
         {make<RingAllreduce>(ranks, count), make<HalvingDoublingAllreduce>(ranks, count),
          make<RecursiveDoublingAllreduce>(ranks, count)})
      RC_ASSERT(play_allreduce(ranks, count, schedule, play).failure == "");
  });
  rc::prop("parts", [] {
    const auto parts =
        *rc::gen::nonEmpty(rc::gen::container<PartSizes>(rc::gen::inRange<std::uint64_t>(0, 20)));
    if (parts.size() > 64) return;
    const Play play{*rc::gen::arbitrary<bool>(), Sending::buffered,
                    *rc::gen::arbitrary<unsigned>()};
    for (const auto& schedule :
         {make_parts<RingReducescatter>(parts), make_parts<PairwiseReducescatter>(parts),
          make_parts<RecursiveHalvingReducescatter>(parts)})
      RC_ASSERT(play_reducescatter(parts, schedule, play).failure == "");
    for (const auto& schedule :
         {make_parts<RingAllgather>(parts), make_parts<RecursiveDoublingAllgather>(parts)})
      RC_ASSERT(play_allgather(parts, schedule, play).failure == "");
  });
}

TEST_CASE("no schedule sends more bytes or takes more steps than its bound") {
  for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
    const auto n = static_cast<std::size_t>(ranks), count = 4 * n;
    const int fold = is_power_of_two(ranks) ? 0 : 2, rounds = log2_down(ranks);
    const std::size_t chunk = 4, own = 4;
    const PartSizes parts(n, 4);

    const auto ring = play_allreduce(ranks, count, make<RingAllreduce>(ranks, count), {});
    CHECK(most_sent(ring) == 2 * (n - 1) * chunk);
    CHECK(ring.steps == 2 * (ranks - 1));
    CHECK(ring.peers == std::vector<std::size_t>(n, 1));

    const auto halving =
        play_allreduce(ranks, count, make<HalvingDoublingAllreduce>(ranks, count), {});
    const std::size_t power = std::size_t{1} << rounds;
    const std::size_t rounded = power * ((count + power - 1) / power);
    CHECK(most_sent(halving) <= 2 * (power - 1) * rounded / power + (fold ? count : 0));
    CHECK(halving.steps == 2 * rounds + fold);

    const auto doubling =
        play_allreduce(ranks, count, make<RecursiveDoublingAllreduce>(ranks, count), {});
    CHECK(most_sent(doubling) == (rounds + (fold ? 1 : 0)) * count);
    CHECK(doubling.steps == rounds + fold);

    const auto scattered = play_reducescatter(parts, make_parts<RingReducescatter>(parts), {});
    CHECK(most_sent(scattered) == count - own);
    CHECK(scattered.steps == ranks - 1);
    const auto direct = play_reducescatter(parts, make_parts<PairwiseReducescatter>(parts), {});
    CHECK(most_sent(direct) == count - own);
    CHECK(PairwiseReducescatter(0, Parts(parts)).scratch() == 0);
    const auto halved =
        play_reducescatter(parts, make_parts<RecursiveHalvingReducescatter>(parts), {});
    CHECK(halved.steps == rounds + (fold ? 3 : 0));
    CHECK(most_sent(halved) <= count + own);

    const auto gathered = play_allgather(parts, make_parts<RingAllgather>(parts), {});
    CHECK(most_sent(gathered) == count - own);
    const auto doubled = play_allgather(parts, make_parts<RecursiveDoublingAllgather>(parts), {});
    CHECK(doubled.steps == rounds + fold);
    CHECK(most_sent(doubled) <= (fold ? count + 2 * (power - 1) * own : count - own));

    const auto tree =
        play_broadcast(ranks, 1, 5, make<TreeBroadcast>(ranks, 1, std::size_t{5}), {});
    CHECK(tree.steps == log2_up(ranks));
    CHECK(most_sent(tree) == 5 * static_cast<std::size_t>(log2_up(ranks)));
    const auto chain = play_broadcast(ranks, 1, 10, make_chain(ranks, 1, 10, 2), {});
    CHECK(chain.steps == log2_up(ranks) + 5 + ranks - 2);
    CHECK(most_sent(chain) == 10);
  }
}

TEST_CASE("where only some ranks begin an operation, one of the others hears of it") {
  for (int ranks = 2; ranks <= 20; ++ranks) {
    const PartSizes parts(static_cast<std::size_t>(ranks), 1);
    const auto count = static_cast<std::size_t>(ranks);
    const Splits splits(count, parts);
    const std::vector<Interpreter::Make> all = {make<RingAllreduce>(ranks, count),
                                                make<HalvingDoublingAllreduce>(ranks, count),
                                                make<RecursiveDoublingAllreduce>(ranks, count),
                                                make_parts<RingReducescatter>(parts),
                                                make_parts<PairwiseReducescatter>(parts),
                                                make_parts<RecursiveHalvingReducescatter>(parts),
                                                make_parts<RingAllgather>(parts),
                                                make_parts<RecursiveDoublingAllgather>(parts),
                                                make<TreeBroadcast>(ranks, ranks - 1, count),
                                                make_chain(ranks, ranks / 2, count, 1),
                                                make_alltoall(splits),
                                                make<DisseminationBarrier>(ranks)};
    std::mt19937_64 random(static_cast<unsigned>(ranks));
    const bool every = ranks <= 7;
    const RankSet world = all_of(ranks);
    for (RankSet i = 1; i < (every ? world : 150); ++i) {
      const RankSet begun = every ? i : random() & world;
      if (begun == 0 || begun == world) continue;
      for (std::size_t s = 0; s < all.size(); ++s) {
        INFO("schedule " << s << ", " << ranks << " ranks, begun by " << begun);
        REQUIRE(tells_others(ranks, count, all[s], begun));
      }
    }
  }
}

TEST_CASE("thousands of ranks agree on every message, in as many steps as a logarithm") {
  for (const int ranks : {1000, 4096, 16384}) {
    const std::size_t count = 100'000;
    for (const auto& schedule :
         {make<HalvingDoublingAllreduce>(ranks, count),
          make<RecursiveDoublingAllreduce>(ranks, count),
          make<TreeBroadcast>(ranks, ranks - 3, count), make<DisseminationBarrier>(ranks)}) {
      std::vector<std::unique_ptr<Schedule>> world;
      for (int rank = 0; rank < ranks; ++rank) world.push_back(schedule(rank));
      REQUIRE(world[0]->steps() <= 2 * log2_up(ranks));
      bool agree = true;
      for (int rank = 0; rank < ranks; ++rank)
        for (int k = 0; k < world[0]->steps(); ++k) {
          const Step mine = world[rank]->step(k);
          if (mine.from != kNobody) agree &= world[mine.from]->step(k).to == rank;
          if (mine.to == kNobody) continue;
          const Step theirs = world[mine.to]->step(k);
          agree &= theirs.from == rank && theirs.recv.range.size() == mine.send.range.size();
        }
      CHECK(agree);
    }
  }
}

TEST_CASE("the interpreter sees a broken promise") {
  // The chain alone: the root finishes without news of the others.
  const auto chain = make<ChainBroadcast>(3, 0, std::size_t{4}, std::size_t{2});
  CHECK(play_broadcast(3, 0, 4, chain, {}).failure ==
        "3 ranks: rank 0 at step 3 finished without news of every rank");
  CHECK_FALSE(tells_others(3, 4, chain, just(1) | just(2)));

  // Ranks that disagree about the count, about the root, or about the algorithm.
  const auto counts = [](int rank) {
    return std::make_unique<RingAllreduce>(rank, 3, rank == 1 ? 5 : 6);
  };
  CHECK(play_allreduce(3, 6, counts, {}).failure != "");
  const auto roots = [](int rank) { return std::make_unique<TreeBroadcast>(rank, 3, rank, 4); };
  CHECK(play_broadcast(3, 0, 4, roots, {}).failure != "");
  const auto algorithms = [](int rank) -> std::unique_ptr<Schedule> {
    if (rank == 0) return std::make_unique<RingAllreduce>(rank, 4, 4);
    return std::make_unique<HalvingDoublingAllreduce>(rank, 4, 4);
  };
  CHECK(play_allreduce(4, 4, algorithms, {}).failure != "");

  // A reducescatter as an allreduce: elements that nothing was written to.
  const PartSizes parts(4, 1);
  CHECK(play_allreduce(4, 4, make_parts<RingReducescatter>(parts), {}).failure != "");
}

TEST_CASE("the ring allreduce is the one in the picture") {
  // Rank 1 of 4, on 4 elements: chunk i is element i.
  const RingAllreduce schedule(1, 4, 4);
  const auto chunk = [](Buffer buffer, std::size_t i) { return Slice{buffer, {i, i + 1}}; };
  using enum Buffer;
  CHECK(schedule.step(0) == Step{2, 0, chunk(in, 1), chunk(out, 0), chunk(in, 0), Act::reduce});
  CHECK(schedule.step(1) == Step{2, 0, chunk(out, 0), chunk(out, 3), chunk(in, 3), Act::reduce});
  CHECK(schedule.step(2) == Step{2, 0, chunk(out, 3), chunk(out, 2), chunk(in, 2), Act::complete});
  CHECK(schedule.step(3) == Step{2, 0, chunk(out, 2), chunk(out, 1), {}, Act::copy});
  CHECK(schedule.step(5) == Step{2, 0, chunk(out, 0), chunk(out, 3), {}, Act::copy});
}

TEST_CASE("the chain broadcast is the one in the picture") {
  // Distance 1 of 4 from root 3, in chunks of 2.
  const ChainBroadcast schedule(0, 4, 3, 6, 2);
  REQUIRE(schedule.steps() == 5);
  using enum Buffer;
  CHECK(schedule.step(0) == Step{kNobody, 3, {}, {out, {0, 2}}});
  CHECK(schedule.step(1) == Step{1, 3, {out, {0, 2}}, {out, {2, 4}}});
  CHECK(schedule.step(3) == Step{1, kNobody, {out, {4, 6}}, {}});
  CHECK(schedule.step(4) == Step{});
}

TEST_CASE("the tree broadcast is the one in the picture") {
  // Distances 1 and 4 of 6 from root 2.
  const Slice tensor{Buffer::out, {0, 8}};
  const TreeBroadcast near(3, 6, 2, 8), far(0, 6, 2, 8);
  CHECK(near.step(0) == Step{4, 2, {}, tensor});
  CHECK(near.step(1) == Step{5, 1, tensor, {}});
  CHECK(near.step(2) == Step{1, 5, tensor, {}});
  CHECK(far.step(1) == Step{2, 4, {}, {}});
  CHECK(far.step(2) == Step{4, 2, {}, tensor});
}

TEST_CASE("recursive doubling keeps apart what it sends and what it receives") {
  // Two ranks have one round, and `in` may be `out`.
  const RecursiveDoublingAllreduce schedule(0, 2, 3);
  using enum Buffer;
  CHECK(schedule.local_copy() == LocalCopy{{in, {0, 3}}, {scratch, {0, 3}}});
  CHECK(schedule.step(0) ==
        Step{1, 1, {scratch, {0, 3}}, {out, {0, 3}}, {scratch, {0, 3}}, Act::complete});
  // Four have two and need no copy.
  CHECK(RecursiveDoublingAllreduce(0, 4, 3).local_copy().empty());
}
