#pragma once

#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// ⌈log2(n)⌉, the number of steps in which news of one rank can reach all others.
int dissemination_steps(int ranks);

// Empty messages over distances 1, 2, 4, …
//
//   n = 5       step 0   step 1   step 2       (to / from)
//   rank 0      1 / 4    2 / 3    4 / 1
//   rank 1      2 / 0    3 / 4    0 / 2
//   …
//
// All ranks have begun: after step k a rank has news of the 2^(k+1) - 1 ranks before it.  No
// silent mismatch: in step 0 each rank sends to the next on the ring.
class DisseminationBarrier final : public Schedule {
 public:
  DisseminationBarrier(int rank, int ranks) : rank_(rank), ranks_(ranks) {}

  int steps() const override { return dissemination_steps(ranks_); }
  Step step(int k) const override;

 private:
  int rank_, ranks_;
};

}  // namespace corro::runtime
