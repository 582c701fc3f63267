#include "runtime/pattern/dissemination_barrier.h"

#include <bit>

#include "runtime/pattern/ring.h"

namespace corro::runtime {

int dissemination_steps(int ranks) {
  return std::bit_width(static_cast<unsigned>(ranks - 1));
}

Step DisseminationBarrier::step(int k) const {
  return {.to = ring_shift(rank_, 1 << k, ranks_), .from = ring_shift(rank_, -(1 << k), ranks_)};
}

}  // namespace corro::runtime
