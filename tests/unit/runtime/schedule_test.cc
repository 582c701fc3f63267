#include <rapidcheck/catch.h>
#include <bitset>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "runtime/pattern/chain_broadcast.h"
#include "runtime/pattern/ring.h"
#include "runtime/pattern/ring_allreduce.h"
#include "runtime/pattern/ring_barrier.h"

using namespace corro;
using namespace corro::runtime;

namespace {

constexpr int kMost = 33;
using Parts = std::bitset<kMost>;  // whose part an element has

// Plays all ranks' schedules step by step on elements that only know whose parts are in them, and
// checks every message against what its receiver expects.
class Table {
 public:
  template <class Make>
  Table(int size, std::size_t count, Make make) : size_(size), elements_(size) {
    for (int rank = 0; rank < size; ++rank) {
      schedules_.push_back(make(rank));
      elements_[rank].assign(count, Parts().set(rank));
    }
  }

  // Whether all went well.
  bool play() {
    for (int k = 0; k < schedules_[0]->steps(); ++k) {
      const auto before = elements_;  // all send at once
      for (int rank = 0; rank < size_; ++rank) receive(k, rank, before);
    }
    return well_;
  }

  bool all_have(const Parts& parts) const {
    for (const auto& elements : elements_)
      for (const Parts& element : elements)
        if (element != parts) return false;
    return true;
  }

  std::size_t completed() const { return completed_; }

 private:
  void receive(int k, int rank, const std::vector<std::vector<Parts>>& before) {
    const Step mine = schedules_[rank]->step(k);
    expect(schedules_[rank]->steps() == schedules_[0]->steps());
    expect(mine.to == kNobody || schedules_[mine.to]->step(k).from == rank);
    if (mine.from == kNobody) return;
    const Step theirs = schedules_[mine.from]->step(k);
    expect(theirs.to == rank && theirs.send.size() == mine.recv.size() &&
           mine.recv.end <= elements_[rank].size());
    for (std::size_t i = 0; well_ && i < mine.recv.size(); ++i)
      take(mine.act, before[mine.from][theirs.send.begin + i],
           elements_[rank][mine.recv.begin + i]);
  }

  void take(Act act, const Parts& from, Parts& into) {
    expect(act == Act::copy || (from & into).none());  // nobody's part is added twice
    into = act == Act::copy ? from : from | into;
    if (act != Act::complete) return;
    expect(into.count() == static_cast<std::size_t>(size_));
    ++completed_;
  }

  void expect(bool holds) { well_ = well_ && holds; }

  int size_;
  std::vector<std::unique_ptr<Schedule>> schedules_;
  std::vector<std::vector<Parts>> elements_;
  std::size_t completed_ = 0;
  bool well_ = true;
};

Parts everyone(int size) {
  Parts parts;
  for (int rank = 0; rank < size; ++rank) parts.set(rank);
  return parts;
}

bool allreduce_is_right(int size, std::size_t count) {
  Table table(size, count,
              [&](int rank) { return std::make_unique<RingAllreduce>(rank, size, count); });
  return table.play() && table.all_have(everyone(size)) &&
         table.completed() == (size > 1 ? count : 0);
}

bool broadcast_is_right(int size, std::size_t count, int root, std::size_t chunk) {
  Table table(size, count, [&](int rank) {
    return std::make_unique<ChainBroadcast>(rank, size, root, count, chunk);
  });
  return table.play() && table.all_have(Parts().set(root));
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

TEST_CASE("the ring allreduce adds everyone's part once, everywhere") {
  for (int size = 1; size <= kMost; ++size)
    for (const int count : {0, 1, size - 1, size, size + 1, 3 * size + 2})
      REQUIRE(allreduce_is_right(size, static_cast<std::size_t>(count)));
  rc::prop("for any count", [] {
    RC_ASSERT(allreduce_is_right(*rc::gen::inRange(1, 12), *rc::gen::inRange<std::size_t>(0, 100)));
  });
}

TEST_CASE("the ring allreduce takes 2(n-1) steps and speaks with neighbours only") {
  for (int size = 1; size <= kMost; ++size) {
    const RingAllreduce schedule(size - 1, size, 100);
    REQUIRE(schedule.steps() == 2 * (size - 1));
    for (int k = 0; k < schedule.steps(); ++k) {
      CHECK(schedule.step(k).to == ring_next(size - 1, size));
      CHECK(schedule.step(k).from == ring_previous(size - 1, size));
    }
  }
}

TEST_CASE("the ring allreduce is the one in the picture") {
  // Rank 1 of 4, on 4 elements: chunk i is element i.
  const RingAllreduce schedule(1, 4, 4);
  const auto chunk = [](std::size_t i) { return Range{i, i + 1}; };
  CHECK(schedule.step(0) == Step{2, 0, chunk(1), chunk(0), Act::reduce});
  CHECK(schedule.step(2) == Step{2, 0, chunk(3), chunk(2), Act::complete});
  CHECK(schedule.step(3) == Step{2, 0, chunk(2), chunk(1), Act::copy});
  CHECK(schedule.step(5) == Step{2, 0, chunk(0), chunk(3), Act::copy});
}

TEST_CASE("the chain broadcast brings the root's elements everywhere") {
  rc::prop("for any world, root and chunk", [] {
    const int size = *rc::gen::inRange(1, kMost + 1);
    RC_ASSERT(broadcast_is_right(size, *rc::gen::inRange<std::size_t>(0, 100),
                                 *rc::gen::inRange(0, size),
                                 *rc::gen::inRange<std::size_t>(1, 50)));
  });
}

TEST_CASE("the chain broadcast is the one in the picture") {
  // Distance 1 of 4 from root 3, in chunks of 2.
  const ChainBroadcast schedule(0, 4, 3, 6, 2);
  REQUIRE(schedule.steps() == 5);
  CHECK(schedule.step(0) == Step{kNobody, 3, {}, {0, 2}});
  CHECK(schedule.step(1) == Step{1, 3, {0, 2}, {2, 4}});
  CHECK(schedule.step(3) == Step{1, kNobody, {4, 6}, {}});
  CHECK(schedule.step(4) == Step{});
}

TEST_CASE("nobody passes the ring barrier before everyone has come to it") {
  for (int size = 1; size <= kMost; ++size) {
    // What a rank has heard of travels with its messages.
    std::vector<Parts> heard(size);
    for (int rank = 0; rank < size; ++rank) heard[rank].set(rank);
    for (int k = 0; k < RingBarrier(0, size).steps(); ++k) {
      const auto before = heard;
      for (int rank = 0; rank < size; ++rank) {
        const Step step = RingBarrier(rank, size).step(k);
        REQUIRE(RingBarrier(step.to, size).step(k).from == rank);
        REQUIRE((step.send.empty() && step.recv.empty()));
        heard[rank] |= before[step.from];
      }
    }
    for (const Parts& parts : heard) CHECK(parts == everyone(size));
  }
}

TEST_CASE("a rank's neighbours on the ring are two others, or one, or none") {
  CHECK(ring_neighbours(0, 1).empty());
  CHECK(ring_neighbours(1, 2) == std::vector{0});
  CHECK(ring_neighbours(0, 5) == std::vector{4, 1});
}
