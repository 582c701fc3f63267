#include "tests/unit/runtime/pattern/worlds.h"

#include <fmt/format.h>
#include <numeric>

namespace corro::runtime::test {

namespace {

using Elements = std::vector<Element>;

std::int64_t value_at(int rank, std::size_t i) {
  return (rank + 1) * 1'000'003LL + static_cast<std::int64_t>(i) * 7919;
}

Elements elements_of(int rank, std::size_t count) {
  Elements elements(count);
  for (std::size_t i = 0; i < count; ++i)
    elements[i] = {.value = value_at(rank, i),
                   .tree = static_cast<std::uint64_t>(value_at(rank, i)) * 0x9e3779b97f4a7c15U,
                   .ranks = just(rank),
                   .written = true};
  return elements;
}

std::size_t sum(const std::vector<std::uint64_t>& parts, int first, int last) {
  return std::accumulate(parts.begin() + first, parts.begin() + last, std::size_t{0});
}

Memory memory_for(const Elements& in, std::size_t out_size, std::size_t at, bool in_place) {
  return in_place ? Memory::in_place(in, out_size, at) : Memory::apart(in, out_size);
}

// The failure of a result that does not hold, unless there is one already.
void expect(Outcome& outcome, bool holds, int rank, std::size_t i, const char* what) {
  if (outcome.failure.empty() && !holds)
    outcome.failure = fmt::format("{}: rank {}, element {}", what, rank, i);
}

std::int64_t sum_at(int ranks, std::size_t i) {
  std::int64_t result = 0;
  for (int rank = 0; rank < ranks; ++rank) result += value_at(rank, i);
  return result;
}

// `got` is complete, and the sum over all ranks of what was at `i`.
void expect_sum(Outcome& outcome, int ranks, int rank, std::size_t i, const Element& got) {
  expect(outcome, got.written && got.value == sum_at(ranks, i), rank, i, "wrong sum");
  expect(outcome, got.ranks == all_of(ranks), rank, i, "a rank's part is missing");
  expect(outcome, ranks == 1 || got.complete, rank, i, "not completed");
}

void expect_copy(Outcome& outcome, int source, std::size_t at, int rank, std::size_t i,
                 const Element& got) {
  expect(outcome, got.written && got.value == value_at(source, at), rank, i, "wrong element");
}

}  // namespace

Outcome play_allreduce(int ranks, std::size_t count, const Interpreter::Make& make, Play play) {
  std::vector<Memory> memories;
  for (int rank = 0; rank < ranks; ++rank)
    memories.push_back(memory_for(elements_of(rank, count), count, 0, play.in_place));
  Outcome outcome = Interpreter(ranks, make, memories, play.seed).run(play.sending);
  for (std::size_t i = 0; i < count; ++i) {
    const Element& expected = memories[0].out()[i];
    expect_sum(outcome, ranks, 0, i, expected);
    for (int rank = 1; rank < ranks; ++rank) {
      const Element& got = memories[rank].out()[i];
      expect(outcome, got.value == expected.value && got.complete, rank, i, "wrong sum");
      expect(outcome, got.tree == expected.tree, rank, i, "other bits than rank 0");
    }
  }
  return outcome;
}

Outcome play_reducescatter(const std::vector<std::uint64_t>& parts, const Interpreter::Make& make,
                           Play play) {
  const int ranks = static_cast<int>(parts.size());
  const std::size_t total = sum(parts, 0, ranks);
  std::vector<Memory> memories;
  for (int rank = 0; rank < ranks; ++rank)
    memories.push_back(
        memory_for(elements_of(rank, total), parts[rank], sum(parts, 0, rank), play.in_place));
  Outcome outcome = Interpreter(ranks, make, memories, play.seed).run(play.sending);
  for (int rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < parts[rank]; ++i)
      expect_sum(outcome, ranks, rank, sum(parts, 0, rank) + i, memories[rank].out()[i]);
  return outcome;
}

Outcome play_allgather(const std::vector<std::uint64_t>& parts, const Interpreter::Make& make,
                       Play play) {
  const int ranks = static_cast<int>(parts.size());
  const std::size_t total = sum(parts, 0, ranks);
  std::vector<Memory> memories;
  for (int rank = 0; rank < ranks; ++rank)
    memories.push_back(
        memory_for(elements_of(rank, parts[rank]), total, sum(parts, 0, rank), play.in_place));
  Outcome outcome = Interpreter(ranks, make, memories, play.seed).run(play.sending);
  for (int rank = 0; rank < ranks; ++rank) {
    std::size_t at = 0;
    for (int source = 0; source < ranks; ++source)
      for (std::size_t i = 0; i < parts[source]; ++i, ++at)
        expect_copy(outcome, source, i, rank, at, memories[rank].out()[at]);
  }
  return outcome;
}

// A rank that is not the root has no `in`, or one whose contents do not matter.
Outcome play_broadcast(int ranks, int root, std::size_t count, const Interpreter::Make& make,
                       Play play) {
  std::vector<Memory> memories;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool has_in = rank == root || play.in_place;
    Elements in = elements_of(rank, has_in ? count : 0);
    if (rank != root)
      for (Element& element : in) element.written = false;
    memories.push_back(memory_for(in, count, 0, play.in_place));
  }
  Outcome outcome = Interpreter(ranks, make, memories, play.seed).run(play.sending);
  for (int rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < count; ++i)
      expect_copy(outcome, root, i, rank, i, memories[rank].out()[i]);
  return outcome;
}

Outcome play_barrier(int ranks, const Interpreter::Make& make, Play play) {
  return play_broadcast(ranks, 0, 0, make, play);
}

std::vector<std::uint64_t> received_by(const Splits& splits, int rank) {
  std::vector<std::uint64_t> received;
  for (const auto& sends : splits) received.push_back(sends[static_cast<std::size_t>(rank)]);
  return received;
}

Outcome play_alltoall(const Splits& splits, const Interpreter::Make& make, Play play) {
  const int ranks = static_cast<int>(splits.size());
  std::vector<Memory> memories;
  for (int rank = 0; rank < ranks; ++rank)
    memories.push_back(Memory::apart(elements_of(rank, sum(splits[rank], 0, ranks)),
                                     sum(received_by(splits, rank), 0, ranks)));
  Outcome outcome = Interpreter(ranks, make, memories, play.seed).run(play.sending);
  for (int rank = 0; rank < ranks; ++rank) {
    std::size_t at = 0;
    for (int source = 0; source < ranks; ++source)
      for (std::size_t i = 0; i < splits[source][rank]; ++i, ++at)
        expect_copy(outcome, source, sum(splits[source], 0, rank) + i, rank, at,
                    memories[rank].out()[at]);
  }
  return outcome;
}

bool tells_others(int ranks, std::size_t size, const Interpreter::Make& make, RankSet begun) {
  std::vector<Memory> memories;
  for (int rank = 0; rank < ranks; ++rank)
    memories.push_back(Memory::apart(elements_of(rank, size), size));
  return Interpreter(ranks, make, memories, static_cast<std::uint32_t>(begun))
      .run_only(begun)
      .told_others;
}

}  // namespace corro::runtime::test
