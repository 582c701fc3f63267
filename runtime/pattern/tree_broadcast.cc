#include "runtime/pattern/tree_broadcast.h"

#include "runtime/pattern/dissemination_barrier.h"
#include "runtime/pattern/ring.h"

namespace corro::runtime {

TreeBroadcast::TreeBroadcast(int rank, int ranks, int root, std::size_t count)
    : rank_(rank), ranks_(ranks), distance_(ring_shift(rank, -root, ranks)), count_(count) {}

int TreeBroadcast::steps() const {
  return dissemination_steps(ranks_);
}

Step TreeBroadcast::step(int k) const {
  const int informed = 1 << k;  // distances below have the tensor
  Step step = DisseminationBarrier(rank_, ranks_).step(k);
  if (distance_ < informed && distance_ + informed < ranks_)
    step.send = {distance_ == 0 ? Buffer::in : Buffer::out, {0, count_}};
  if (distance_ >= informed && distance_ < 2 * informed) step.recv = {Buffer::out, {0, count_}};
  return step;
}

LocalCopy TreeBroadcast::local_copy() const {
  if (distance_ != 0) return {};
  return {{Buffer::in, {0, count_}}, {Buffer::out, {0, count_}}};
}

}  // namespace corro::runtime
