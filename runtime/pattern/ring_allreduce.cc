#include "runtime/pattern/ring_allreduce.h"

#include "runtime/pattern/ring.h"

namespace corro::runtime {

Step RingAllreduce::step(int k) const {
  const int last_reduce = size_ - 2;
  const Act act = k < last_reduce ? Act::reduce : k == last_reduce ? Act::complete : Act::copy;
  return {.to = ring_next(rank_, size_),
          .from = ring_previous(rank_, size_),
          .send = chunk(rank_ - k),
          .recv = chunk(rank_ - k - 1),
          .act = act};
}

// The index counts round the ring; step() goes back by less than two rounds.
Range RingAllreduce::chunk(int index) const {
  return part_of(count_, size_, (index + 2 * size_) % size_);
}

}  // namespace corro::runtime
