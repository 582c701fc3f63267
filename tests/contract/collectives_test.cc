// Every collective, type and reduction, in and out of place, in one piece and in several, against
// the plainest arithmetic, on every way that ranks can reach each other.
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/support/elements.h"
#include "tests/support/local_job.h"
#include "tests/support/sim_time.h"

using namespace corro;
using namespace corro::runtime;
using namespace std::chrono_literals;

namespace {

struct Case {
  Shape shape;
  std::uint64_t salt = 0;
  bool in_place = false, scattered = false;

  std::string text() const {
    return fmt::format("{}{}{}", shape.text(), in_place ? ", in place" : "",
                       scattered ? ", scattered" : "");
  }

  std::uint64_t split(int from, int to) const {
    return test::Chance(salt ^ static_cast<std::uint64_t>(from * 100 + to)).below(40);
  }

  // 0 to 3, and 1 or 2 where they are multiplied.
  long value(int rank, std::size_t i) const {
    const auto any = static_cast<long>(
        (salt + static_cast<std::uint64_t>(rank) * 7919 + i) * 0x9e3779b97f4a7c15 >> 61);
    if (shape.type == DataType::boolean) return any & 1;
    if (shape.reduction == Reduction::product) return 1 + (any & 1);
    return any & 3;
  }

  long reduced(int ranks, std::size_t i) const {
    long result = value(0, i);
    for (int rank = 1; rank < ranks; ++rank)
      result = combined(shape.type, shape.reduction, result, value(rank, i));
    return result;
  }

  Operation operation(int rank, int ranks) const {
    Operation op;
    op.shape = shape;
    for (int other = 0; shape.kind == Kind::alltoall && other < ranks; ++other) {
      op.sends.push_back(split(rank, other));
      op.receives.push_back(split(other, rank));
    }
    return op;
  }

  std::size_t begin_of(int rank) const {
    return std::accumulate(shape.parts.begin(), shape.parts.begin() + rank, std::uint64_t{0});
  }

  Bytes input(int rank, int ranks) const {
    Bytes in;
    const auto bytes = operation(rank, ranks).in_bytes(rank);
    for (std::size_t i = 0; i < bytes / size_of(shape.type); ++i)
      put_element(in, shape.type, value(rank, i));
    return in;
  }

  Bytes wanted(int rank, int ranks) const {
    Bytes out;
    const auto put = [&](long v) { put_element(out, shape.type, v); };
    const auto put_reduced = [&](std::size_t i) {
      const long sum = reduced(ranks, i);
      if (shape.reduction != Reduction::average) return put(sum);
      if (!is_float(shape.type)) return put(sum / ranks);
      // Inputs are multiples of the number of ranks where averages are compared to the bit.
      put(sum / ranks);
    };
    switch (shape.kind) {
      case Kind::allreduce:
        for (std::size_t i = 0; i < shape.count; ++i) put_reduced(i);
        break;
      case Kind::reducescatter:
        for (std::size_t i = 0; i < shape.parts[static_cast<std::size_t>(rank)]; ++i)
          put_reduced(begin_of(rank) + i);
        break;
      case Kind::allgather:
        for (int from = 0; from < ranks; ++from)
          for (std::size_t i = 0; i < shape.parts[static_cast<std::size_t>(from)]; ++i)
            put(value(from, i));
        break;
      case Kind::broadcast:
        for (std::size_t i = 0; i < shape.count; ++i) put(value(shape.root, i));
        break;
      case Kind::alltoall:
        for (int from = 0; from < ranks; ++from) {
          std::uint64_t begin = 0;
          for (int to = 0; to < rank; ++to) begin += split(from, to);
          for (std::uint64_t i = 0; i < split(from, rank); ++i) put(value(from, begin + i));
        }
        break;
      case Kind::barrier:
        break;
    }
    return out;
  }
};

// Whole elements, cut anywhere between them.
template <class P, class Memory>
P cut(Memory& memory, std::size_t element, bool scattered) {
  using Piece = typename P::Piece;
  if (!scattered) return P(Piece(memory.data(), memory.size()));
  std::vector<Piece> pieces;
  for (std::size_t at = 0, n = 1; at < memory.size(); n = n * 3 % 1013 + 1) {
    const std::size_t size = std::min(n * element, memory.size() - at);
    pieces.emplace_back(memory.data() + at, size);
    at += size;
  }
  return P(std::move(pieces));
}

// What is wrong after one operation on one rank, or nothing.
std::string play(Job& job, const Case& c, int rank, int ranks) {
  const std::size_t element = size_of(c.shape.type);
  const Operation op = c.operation(rank, ranks);
  Bytes in = c.input(rank, ranks), out(op.out_bytes(rank));
  const bool averaged = c.shape.reduction == Reduction::average;
  Buffers buffers;
  if (c.in_place && c.shape.kind == Kind::allreduce) out = in;
  buffers.out = cut<MutPieces>(out, element, c.scattered);
  buffers.in =
      cut<Pieces>(c.in_place && c.shape.kind == Kind::allreduce ? out : in, element, c.scattered);
  if (const auto why = invalid(op, buffers, rank, ranks)) return c.text() + ": " + *why;
  const auto ran = job.run(Job::kWorld, op, buffers, 30s);
  if (!ran) return c.text() + ": " + ran.error().text;
  if (averaged && is_float(c.shape.type)) return "";  // kernels have tests of their own for these
  if (out != c.wanted(rank, ranks)) return c.text() + ": wrong values";
  return "";
}

std::vector<Case> every_case(int ranks) {
  std::vector<Case> cases;
  test::Chance chance(static_cast<std::uint64_t>(ranks));
  const auto add = [&](Kind kind, DataType type, Reduction reduction, std::size_t count) {
    Case c;
    c.shape.kind = kind;
    c.shape.type = type;
    c.shape.reduction = reduction;
    c.salt = chance.next();
    c.in_place = chance.one_in(2);
    c.scattered = chance.one_in(3);
    if (kind == Kind::broadcast)
      c.shape.root = static_cast<std::int32_t>(chance.below(static_cast<std::size_t>(ranks)));
    if (kind == Kind::allgather || kind == Kind::reducescatter) {
      for (int rank = 0; rank < ranks; ++rank) c.shape.parts.push_back(chance.below(count + 1));
      count = std::accumulate(c.shape.parts.begin(), c.shape.parts.end(), std::uint64_t{0});
    }
    c.shape.count = kind == Kind::alltoall || kind == Kind::barrier ? 0 : count;
    cases.push_back(c);
  };
  for (int t = 0; t <= static_cast<int>(last_of(DataType{})); ++t) {
    const auto type = static_cast<DataType>(t);
    // Which sizes meet which reductions is left to chance; over all worlds every pair is met.
    for (int round = 0; round < 2; ++round) {
      constexpr std::array<std::size_t, 6> kCounts = {0, 1, 7, 100, 1000, 2500};
      const auto count = kCounts[chance.below(kCounts.size())];
      for (int r = 0; r < static_cast<int>(last_of(Reduction{})); ++r) {
        const auto reduction = static_cast<Reduction>(r);
        if (!takes(type, reduction)) continue;
        add(Kind::allreduce, type, reduction, count);
        if (chance.one_in(2)) add(Kind::reducescatter, type, reduction, count / 3);
      }
      add(Kind::allgather, type, Reduction::sum, count / 2);
      add(Kind::broadcast, type, Reduction::sum, count);
      add(Kind::alltoall, type, Reduction::sum, 0);
    }
  }
  add(Kind::barrier, DataType::u8, Reduction::sum, 0);
  // Some that are larger than any buffer on the way.
  add(Kind::allreduce, DataType::f32, Reduction::sum, 700'001);
  add(Kind::broadcast, DataType::f32, Reduction::sum, 700'001);
  add(Kind::reducescatter, DataType::bf16, Reduction::sum, 300'001);
  add(Kind::allgather, DataType::u8, Reduction::sum, 300'001);
  return cases;
}

using Machines = std::string (*)(int rank);

void play_all(int ranks, Machines machine) {
  LocalJob job(ranks);
  job.machines(machine);
  const auto cases = every_case(ranks);
  const auto complaints = job.each_rank([&](int rank) -> std::string {
    auto mine = Job::open(job.environment(rank));
    if (!mine) return mine.error().text;
    for (const Case& c : cases)
      if (auto wrong = play(**mine, c, rank, ranks); !wrong.empty()) return wrong;
    return "";
  });
  for (const auto& complaint : complaints) CHECK(complaint == "");
}

}  // namespace

TEST_CASE("every collective is right over TCP", "[collectives]") {
  const int ranks = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9);
  play_all(ranks, [](int rank) { return "m" + std::to_string(rank); });
}

TEST_CASE("every collective is right in shared memory", "[collectives]") {
  const int ranks = GENERATE(2, 3, 4, 5, 6, 7, 8, 9);
  play_all(ranks, [](int) { return std::string(); });
}

TEST_CASE("every collective is right where some ranks share machines", "[collectives]") {
  const int ranks = GENERATE(3, 4, 5, 6, 7, 8, 9);
  play_all(ranks, [](int rank) { return "m" + std::to_string(rank % 3 == 2 ? 1 : 0); });
}

TEST_CASE("Adasum averages what is parallel and adds what is orthogonal", "[collectives]") {
  const int ranks = GENERATE(1, 2, 3, 4, 5);
  LocalJob job(ranks);
  const auto results = job.each_rank([&](int rank) {
    auto mine = Job::open(job.environment(rank));
    Operation op;
    op.shape.kind = Kind::allreduce;
    op.shape.type = DataType::f32;
    op.shape.reduction = Reduction::adasum;
    op.shape.count = static_cast<std::uint64_t>(ranks);
    std::vector<float> same(op.shape.count, 3), own(op.shape.count, 0);
    own[static_cast<std::size_t>(rank)] = 2;
    for (auto* values : {&same, &own}) {
      const MutByteView bytes(reinterpret_cast<std::uint8_t*>(values->data()), values->size() * 4);
      const auto ran = (*mine)->run(Job::kWorld, op, {Pieces(bytes), MutPieces(bytes)}, 10s);
      if (!ran) throw std::runtime_error(ran.error().text);
    }
    return std::pair(same, own);
  });
  for (const auto& [same, own] : results) {
    CHECK(same == results[0].first);
    CHECK(own == results[0].second);
    for (const float x : same) CHECK(x == Approx(3));
    for (const float x : own) CHECK(x == Approx(2));
  }
}

TEST_CASE("groups of some ranks work beside each other and beside all", "[collectives]") {
  constexpr int kRanks = 4;
  LocalJob job(kRanks);
  const bool shared = GENERATE(false, true);
  if (shared) job.machines([](int) { return std::string(); });
  const auto sums = job.each_rank([&](int rank) {
    auto mine = Job::open(job.environment(rank));
    const std::vector<int> even = {0, 2}, odd = {3, 1};
    const auto group = (*mine)->open_group(rank % 2 == 0 ? even : odd);
    if (!group) throw std::runtime_error(group.error().text);
    std::vector<double> results;
    Operation op;
    op.shape.kind = Kind::allreduce;
    op.shape.type = DataType::f64;
    op.shape.count = 1;
    for (int i = 0; i < 50; ++i)
      for (const auto number : {*group, Job::kWorld}) {
        double value = rank + i;
        const MutByteView bytes(reinterpret_cast<std::uint8_t*>(&value), sizeof value);
        const auto ran = (*mine)->run(number, op, {Pieces(bytes), MutPieces(bytes)}, 10s);
        if (!ran) throw std::runtime_error(ran.error().text);
        results.push_back(value);
      }
    return results;
  });
  for (int rank = 0; rank < kRanks; ++rank)
    for (std::size_t i = 0; i < 50; ++i) {
      const auto& got = sums[static_cast<std::size_t>(rank)];
      CHECK(got[2 * i] == (rank % 2 == 0 ? 2 : 4) + 2.0 * static_cast<double>(i));
      CHECK(got[2 * i + 1] == 6 + 4.0 * static_cast<double>(i));
    }
}

TEST_CASE("a job that was left can be joined again, any number of times", "[collectives]") {
  LocalJob job(3);
  const auto ended = job.each_rank([&](int rank) -> std::string {
    for (int i = 0; i < 20; ++i) {
      auto mine = Job::open(job.environment(rank));
      if (!mine) return mine.error().text;
      if (auto ran = (*mine)->run(Job::kWorld, {}, {}, 10s); !ran) return ran.error().text;
    }
    return "";
  });
  for (const auto& text : ended) CHECK(text == "");
}
