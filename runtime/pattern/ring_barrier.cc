#include "runtime/pattern/ring_barrier.h"

#include "runtime/pattern/ring.h"

namespace corro::runtime {

Step RingBarrier::step(int) const {
  return {.to = ring_next(rank_, size_), .from = ring_previous(rank_, size_)};
}

}  // namespace corro::runtime
