#pragma once

#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// The buffer is cut into as many chunks as there are ranks.  In each step a rank passes on the
// chunk that it received in the step before and receives the one that lies before that.
//
//   n = 4       step 0   step 1   step 2 │ step 3   step 4   step 5     (send / recv chunk)
//   rank 0      0 / 3    3 / 2    2 / 1* │ 1 / 0    0 / 3    3 / 2
//   rank 1      1 / 0    0 / 3    3 / 2* │ 2 / 1    1 / 0    0 / 3
//   rank 2      2 / 1    1 / 0    0 / 3* │ 3 / 2    2 / 1    1 / 0
//   rank 3      3 / 2    2 / 1    1 / 0* │ 0 / 3    3 / 2    2 / 1
//                       reduce           │          copy
//
// On its way through n-1 ranks a chunk gathers every rank's part (*: complete); on n-1 more it is
// copied to all.  So a chunk is computed on one rank, in one order, and all ranks end up with
// the same bits.  Every rank sends 2(n-1)/n of the buffer, which no allreduce can undercut.
//
// Step 0 sends from `in`, and the operand is always in `in`; all else is in `out`.
//
// All ranks have begun: after n-1 steps a chain of messages from every rank has reached every
// rank.  No silent mismatch: in step 0 each rank sends to the next, so some rank of any subset
// sends to a rank outside of it.
class RingAllreduce final : public Schedule {
 public:
  RingAllreduce(int rank, int ranks, std::size_t count)
      : rank_(rank), ranks_(ranks), count_(count) {}

  int steps() const override { return 2 * (ranks_ - 1); }
  Step step(int k) const override;
  LocalCopy local_copy() const override;

 private:
  Range chunk(int index) const;

  int rank_, ranks_;
  std::size_t count_;
};

}  // namespace corro::runtime
