#pragma once

#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// A binomial tree inside of a dissemination barrier: every rank sends and receives in every step
// as in the barrier, and the messages from ranks that have the tensor to ranks that do not yet
// have it carry it.  `distance` is how far a rank is behind the root on the ring.
//
//   n = 6       step 0   step 1   step 2       (T: the tensor; others are empty)
//   distance 0  → 1 T    → 2 T    → 4 T
//   distance 1  → 2      → 3 T    → 5 T
//   distance 2  → 3      → 4      → 0
//   distance 3  → 4      → 5      → 1
//   distance 4  → 5      → 0      → 2
//   distance 5  → 0      → 1      → 3
//
// ⌈log2(n)⌉ steps, as few as a broadcast alone or a barrier alone.
//
// All ranks have begun, and no silent mismatch: as for the barrier.  A tree alone would promise
// neither: the root would finish without news of any rank, and ranks that disagree about the root
// could wait for each other.
class TreeBroadcast final : public Schedule {
 public:
  TreeBroadcast(int rank, int ranks, int root, std::size_t count);

  int steps() const override;
  Step step(int k) const override;
  LocalCopy local_copy() const override;

 private:
  int rank_, ranks_, distance_;
  std::size_t count_;
};

}  // namespace corro::runtime
