#include "runtime/pattern/ring_allreduce.h"

#include "runtime/pattern/ring.h"

namespace corro::runtime {

Step RingAllreduce::step(int k) const {
  const int last_reduce = ranks_ - 2;
  const Range send = chunk(rank_ - k), recv = chunk(rank_ - k - 1);
  Step step{.to = ring_next(rank_, ranks_),
            .from = ring_previous(rank_, ranks_),
            .send = {k == 0 ? Buffer::in : Buffer::out, send},
            .recv = {Buffer::out, recv}};
  if (k <= last_reduce) {
    step.operand = {Buffer::in, recv};
    step.act = k == last_reduce ? Act::complete : Act::reduce;
  }
  return step;
}

LocalCopy RingAllreduce::local_copy() const {
  if (ranks_ > 1) return {};
  return {{Buffer::in, {0, count_}}, {Buffer::out, {0, count_}}};
}

// The index counts round the ring; step() goes back by less than two rounds.
Range RingAllreduce::chunk(int index) const {
  return part_of(count_, ranks_, ring_shift(index, 0, ranks_));
}

}  // namespace corro::runtime
