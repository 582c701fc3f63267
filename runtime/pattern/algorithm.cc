#include "runtime/pattern/algorithm.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
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

namespace corro::runtime {

namespace {

// Below this a chunk is hardly more than its header, its system call and its wake-up.
constexpr double kLeastChunkBytes = 16 * 1024;

template <class E>
std::optional<E> named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(last_of(E{})); ++i)
    if (name_of(static_cast<E>(i)) == name) return static_cast<E>(i);
  return std::nullopt;
}

std::unique_ptr<Schedule> make_allreduce(Algorithm algorithm, std::size_t count, int rank,
                                         int ranks) {
  if (algorithm == Algorithm::halving_doubling)
    return std::make_unique<HalvingDoublingAllreduce>(rank, ranks, count);
  if (algorithm == Algorithm::recursive_doubling)
    return std::make_unique<RecursiveDoublingAllreduce>(rank, ranks, count);
  return std::make_unique<RingAllreduce>(rank, ranks, count);
}

std::unique_ptr<Schedule> make_reducescatter(Algorithm algorithm, Parts parts, int rank) {
  if (algorithm == Algorithm::pairwise)
    return std::make_unique<PairwiseReducescatter>(rank, std::move(parts));
  if (algorithm == Algorithm::recursive_halving)
    return std::make_unique<RecursiveHalvingReducescatter>(rank, std::move(parts));
  return std::make_unique<RingReducescatter>(rank, std::move(parts));
}

std::unique_ptr<Schedule> make_allgather(Algorithm algorithm, Parts parts, int rank) {
  if (algorithm == Algorithm::recursive_doubling)
    return std::make_unique<RecursiveDoublingAllgather>(rank, std::move(parts));
  return std::make_unique<RingAllgather>(rank, std::move(parts));
}

std::unique_ptr<Schedule> make_broadcast(Algorithm algorithm, const Shape& shape, int rank,
                                         int ranks, const Costs& costs) {
  if (algorithm == Algorithm::tree)
    return std::make_unique<TreeBroadcast>(rank, ranks, shape.root, shape.count);
  return std::make_unique<Sequence>(
      std::make_unique<DisseminationBarrier>(rank, ranks),
      std::make_unique<ChainBroadcast>(rank, ranks, shape.root, shape.count,
                                       chain_chunk(shape, ranks, costs)));
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return "ring";
    case Algorithm::halving_doubling:
      return "halving_doubling";
    case Algorithm::recursive_doubling:
      return "recursive_doubling";
    case Algorithm::recursive_halving:
      return "recursive_halving";
    case Algorithm::pairwise:
      return "pairwise";
    case Algorithm::tree:
      return "tree";
    case Algorithm::chain:
      return "chain";
    case Algorithm::dissemination:
      break;
  }
  return "dissemination";
}

std::optional<Algorithm> algorithm_named(std::string_view name) {
  return named<Algorithm>(name);
}

std::optional<Kind> kind_named(std::string_view name) {
  return named<Kind>(name);
}

std::span<const Algorithm> algorithms_for(Kind kind) {
  using enum Algorithm;
  static constexpr Algorithm kAllreduce[] = {ring, halving_doubling, recursive_doubling};
  static constexpr Algorithm kAllgather[] = {ring, recursive_doubling};
  static constexpr Algorithm kBroadcast[] = {tree, chain};
  static constexpr Algorithm kAlltoall[] = {pairwise};
  static constexpr Algorithm kReducescatter[] = {ring, pairwise, recursive_halving};
  static constexpr Algorithm kBarrier[] = {dissemination};
  switch (kind) {
    case Kind::allreduce:
      return kAllreduce;
    case Kind::allgather:
      return kAllgather;
    case Kind::broadcast:
      return kBroadcast;
    case Kind::alltoall:
      return kAlltoall;
    case Kind::reducescatter:
      return kReducescatter;
    case Kind::barrier:
      break;
  }
  return kBarrier;
}

bool can_do(Algorithm algorithm, Kind kind) {
  return std::ranges::count(algorithms_for(kind), algorithm) > 0;
}

std::unique_ptr<Schedule> make_schedule(Algorithm algorithm, const Operation& op, int rank,
                                        int ranks, const Costs& costs) {
  const Shape& shape = op.shape;
  CORRO_ASSERT(can_do(algorithm, shape.kind));
  CORRO_ASSERT(shape.reduction != Reduction::adasum);
  switch (shape.kind) {
    case Kind::allreduce:
      return make_allreduce(algorithm, shape.count, rank, ranks);
    case Kind::allgather:
      return make_allgather(algorithm, Parts(shape.parts), rank);
    case Kind::broadcast:
      return make_broadcast(algorithm, shape, rank, ranks, costs);
    case Kind::alltoall:
      return std::make_unique<PairwiseAlltoall>(rank, op.sends, op.receives);
    case Kind::reducescatter:
      return make_reducescatter(algorithm, Parts(shape.parts), rank);
    case Kind::barrier:
      break;
  }
  return std::make_unique<DisseminationBarrier>(rank, ranks);
}

// c chunks of a tensor of S bytes take (c + n - 2) steps of a + S/c · b seconds, which is least
// for c² = (n - 2) · S · b / a.  A chunk has S/c bytes.
std::size_t chain_chunk(const Shape& shape, int ranks, const Costs& costs) {
  const auto element = static_cast<double>(size_of(shape.type));
  const double bytes = static_cast<double>(shape.count) * element;
  const double hops = std::max(ranks - 2, 0), per_chunk = hops * costs.seconds_per_byte;
  if (bytes <= kLeastChunkBytes || per_chunk <= 0) return std::max<std::size_t>(1, shape.count);
  const double chunk =
      std::clamp(std::sqrt(bytes * costs.latency_s / per_chunk), kLeastChunkBytes, bytes);
  return static_cast<std::size_t>(chunk / element);
}

}  // namespace corro::runtime
