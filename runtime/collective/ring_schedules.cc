#include "runtime/collective/ring_schedules.h"

#include "runtime/pattern/chain_broadcast.h"
#include "runtime/pattern/ring_allreduce.h"
#include "runtime/pattern/ring_barrier.h"

namespace corro::runtime {

namespace {

// Small enough that the last rank of a short ring does not wait long for its first bytes, large
// enough that a header is nothing beside it.
constexpr std::size_t kBroadcastChunkBytes = 256 * 1024;

}  // namespace

std::unique_ptr<Schedule> ring_schedule(const Operation& op, int rank, int size) {
  switch (op.collective) {
    case Collective::allreduce:
      return std::make_unique<RingAllreduce>(rank, size, op.count);
    case Collective::broadcast:
      return std::make_unique<ChainBroadcast>(rank, size, op.root, op.count,
                                              kBroadcastChunkBytes / size_of(op.type));
    case Collective::barrier:
      break;
  }
  return std::make_unique<RingBarrier>(rank, size);
}

}  // namespace corro::runtime
