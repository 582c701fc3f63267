#include "runtime/pattern/choose.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/assert.h"
#include "runtime/pattern/dissemination_barrier.h"
#include "runtime/pattern/folded_world.h"

namespace corro::runtime {

namespace {

// An estimate that is better by less says nothing: the model is not that good.
constexpr double kClearlyBetter = 0.99;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

std::uint64_t bytes_of(const Shape& shape) {
  return shape.count * size_of(shape.type);
}

std::uint64_t largest_part_bytes(const Shape& shape) {
  const auto largest = std::max_element(shape.parts.begin(), shape.parts.end());
  return largest == shape.parts.end() ? 0 : *largest * size_of(shape.type);
}

// Rounds of a recursive algorithm whose blocks have 1, 2, 4, … indexes: how many bytes they send
// together, if the largest part has `part` bytes.  A block may be as large as everything.
double recursive_bytes(const FoldedWorld& world, double part, double everything) {
  const double index = world.folds() ? 2 * part : part;
  double bytes = 0;
  for (int block = 1; block < world.size(); block *= 2)
    bytes += std::min(block * index, everything);
  return bytes;
}

Work allreduce_work(Algorithm algorithm, double bytes, int ranks) {
  const FoldedWorld world(0, ranks);
  const double n = ranks, rounds = world.rounds(), size = world.size();
  const double folded = world.folds() ? 1 : 0;
  switch (algorithm) {
    case Algorithm::halving_doubling:
      return {.steps = 2 * (rounds + folded),
              .bytes = 2 * bytes * ((size - 1) / size + folded),
              .reduced_bytes = bytes * ((size - 1) / size + folded),
              .distant = true};
    case Algorithm::recursive_doubling:
      return {.steps = rounds + 2 * folded,
              .bytes = bytes * (rounds + 2 * folded),
              .reduced_bytes = bytes * (rounds + folded),
              .distant = true};
    default:
      return {.steps = 2 * (n - 1),
              .bytes = 2 * bytes * (n - 1) / n,
              .reduced_bytes = bytes * (n - 1) / n};
  }
}

Work reducescatter_work(Algorithm algorithm, double bytes, double part, int ranks) {
  const FoldedWorld world(0, ranks);
  const double n = ranks;
  if (algorithm != Algorithm::recursive_halving)
    return {.steps = n - 1,
            .bytes = part * (n - 1),
            .reduced_bytes = part * (n - 1),
            .distant = algorithm == Algorithm::pairwise};
  const double rounds = recursive_bytes(world, part, bytes);
  return {.steps = world.rounds() + (world.folds() ? 3.0 : 0.0),
          .bytes = rounds + (world.folds() ? bytes + part : 0),
          .reduced_bytes = rounds + (world.folds() ? bytes : 0),
          .distant = true};
}

Work allgather_work(Algorithm algorithm, double bytes, double part, int ranks) {
  const FoldedWorld world(0, ranks);
  const double n = ranks;
  if (algorithm != Algorithm::recursive_doubling) return {.steps = n - 1, .bytes = part * (n - 1)};
  return {.steps = world.rounds() + (world.folds() ? 2.0 : 0.0),
          .bytes = recursive_bytes(world, part, bytes) + (world.folds() ? part + bytes : 0),
          .distant = true};
}

Work broadcast_work(Algorithm algorithm, const Shape& shape, int ranks, const Costs& costs) {
  const double bytes = static_cast<double>(bytes_of(shape));
  const double barrier = dissemination_steps(ranks);
  if (algorithm == Algorithm::tree || ranks == 1)
    return {.steps = barrier, .bytes = bytes * barrier, .distant = true};
  const std::size_t chunk = chain_chunk(shape, ranks, costs);
  const double chunks = shape.count == 0 ? 1 : static_cast<double>((shape.count - 1) / chunk + 1);
  const double steps = chunks + ranks - 2;
  const double chunk_bytes = static_cast<double>(chunk * size_of(shape.type));
  return {.steps = barrier + steps, .bytes = std::min(chunk_bytes, bytes) * steps};
}

Shape shape_of(Kind kind, std::uint64_t bytes, int ranks) {
  Shape shape{.kind = kind, .type = DataType::u8};
  if (kind != Kind::alltoall && kind != Kind::barrier) shape.count = bytes;
  if (kind == Kind::allgather || kind == Kind::reducescatter)
    for (int i = 0; i < ranks; ++i) shape.parts.push_back(part_of(bytes, ranks, i).size());
  return shape;
}

// The first of (same, different] that `differs`; all after it do so too.
template <class Differs>
std::uint64_t first_different(std::uint64_t same, std::uint64_t different, Differs differs) {
  while (different - same > 1) {
    const std::uint64_t middle = same + (different - same) / 2;
    (differs(middle) ? different : same) = middle;
  }
  return different;
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

}  // namespace

Work work(Algorithm algorithm, const Shape& shape, int ranks, const Costs& costs) {
  CORRO_ASSERT(can_do(algorithm, shape.kind));
  const auto bytes = static_cast<double>(bytes_of(shape));
  const auto part = static_cast<double>(largest_part_bytes(shape));
  switch (shape.kind) {
    case Kind::allreduce:
      return allreduce_work(algorithm, bytes, ranks);
    case Kind::allgather:
      return allgather_work(algorithm, bytes, part, ranks);
    case Kind::broadcast:
      return broadcast_work(algorithm, shape, ranks, costs);
    case Kind::alltoall:
      return {.steps = ranks - 1.0, .distant = true};
    case Kind::reducescatter:
      return reducescatter_work(algorithm, bytes, part, ranks);
    case Kind::barrier:
      break;
  }
  return {.steps = static_cast<double>(dissemination_steps(ranks)), .distant = true};
}

std::uint64_t scratch_bytes(Algorithm algorithm, const Shape& shape, int ranks) {
  if (shape.kind == Kind::allreduce && algorithm == Algorithm::recursive_doubling)
    return ranks > 1 ? bytes_of(shape) : 0;
  if (shape.kind == Kind::reducescatter && algorithm == Algorithm::ring)
    return static_cast<std::uint64_t>(std::clamp(ranks - 2, 0, 2)) * largest_part_bytes(shape);
  if (shape.kind == Kind::reducescatter && algorithm == Algorithm::recursive_halving)
    return ranks > 2 ? bytes_of(shape) : 0;
  return 0;
}

double estimate(Algorithm algorithm, const Shape& shape, int ranks, const Costs& costs) {
  const Work w = work(algorithm, shape, ranks, costs);
  // Of up to three ranks each is a neighbour of all others.
  const double factor = w.distant && ranks > 3 ? costs.distant_factor : 1;
  return w.steps * costs.latency_s + w.bytes * factor * costs.seconds_per_byte +
         w.reduced_bytes * costs.reduce_seconds_per_byte;
}

Algorithm choose(const Shape& shape, int ranks, const Costs& costs, const Overrides& overrides) {
  if (const auto users = overrides.find(shape.kind, bytes_of(shape))) return *users;
  std::optional<Algorithm> best;
  double least = 0;
  for (const Algorithm algorithm : algorithms_for(shape.kind)) {
    if (scratch_bytes(algorithm, shape, ranks) > costs.most_scratch_bytes) continue;
    const double seconds = estimate(algorithm, shape, ranks, costs);
    if (best && seconds >= least * kClearlyBetter) continue;
    best = algorithm;
    least = seconds;
  }
  CORRO_ASSERT(best);
  return *best;
}

std::vector<Choice> choices(Kind kind, int ranks, const Costs& costs, const Overrides& overrides) {
  const auto choice_at = [&](std::uint64_t bytes) {
    const Shape shape = shape_of(kind, bytes, ranks);
    const Algorithm algorithm = choose(shape, ranks, costs, overrides);
    return Choice{bytes, algorithm, overrides.find(kind, bytes_of(shape)).has_value(),
                  estimate(algorithm, shape, ranks, costs)};
  };
  const auto same = [](const Choice& a, const Choice& b) {
    return a.algorithm == b.algorithm && a.by_user == b.by_user;
  };

  // Between two of these the choice is taken to change from one to another at most.
  std::vector<std::uint64_t> samples = {0};
  for (std::uint64_t bytes = 1; bytes <= kMostBytes; bytes *= 2) samples.push_back(bytes);
  for (const auto& rule : overrides.rules())
    for (const std::uint64_t limit : {rule.from, rule.below})
      if (limit > 0 && limit < kMostBytes) samples.insert(samples.end(), {limit - 1, limit});
  std::ranges::sort(samples);

  std::vector<Choice> found = {choice_at(0)};
  std::uint64_t before = 0;
  for (const std::uint64_t sample : samples) {
    while (!same(choice_at(sample), found.back())) {
      before = first_different(before, sample, [&](std::uint64_t bytes) {
        return !same(choice_at(bytes), found.back());
      });
      found.push_back(choice_at(before));
    }
    before = sample;
  }
  return found;
}

std::string explain(int ranks, const Costs& costs, const Overrides& overrides) {
  std::string text = fmt::format(
      "algorithms for {} ranks: {:.3g} µs a step, {:.3g} GB/s sent, {:.3g} GB/s reduced\n", ranks,
      costs.latency_s * 1e6, 1e-9 / costs.seconds_per_byte, 1e-9 / costs.reduce_seconds_per_byte);
  for (int i = 0; i <= static_cast<int>(last_of(Kind{})); ++i) {
    const Kind kind = static_cast<Kind>(i);
    for (const Choice& choice : choices(kind, ranks, costs, overrides))
      text +=
          fmt::format("  {:<14}from {:<14}{:<20}{:>9}{}\n", choice.from == 0 ? name_of(kind) : "",
                      size_text(choice.from), name_of(choice.algorithm),
                      seconds_text(choice.seconds), choice.by_user ? "  (override)" : "");
  }
  return text;
}

}  // namespace corro::runtime
