#pragma once

#include "runtime/pattern/parts.h"
#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// Every rank sends each other rank its part of `in` directly, and adds up what it receives.
//
//   n = 4       step 0   step 1   step 2      (send to, that rank's part / recv own part from)
//   rank 0      1 / 3    2 / 2    3 / 1*
//   rank 1      2 / 0    3 / 3    0 / 2*
//   rank 2      3 / 1    0 / 0    1 / 3*
//   rank 3      0 / 2    1 / 1    2 / 0*
//
// As many steps and bytes as the ring, without scratch, at the price of a connection between any
// two ranks.
//
// All ranks have begun: each rank receives a message from every other rank.  No silent mismatch:
// in step 0 each rank sends to the next on the ring.
class PairwiseReducescatter final : public Schedule {
 public:
  PairwiseReducescatter(int rank, Parts parts);

  int steps() const override { return ranks_ - 1; }
  Step step(int k) const override;
  LocalCopy local_copy() const override;

 private:
  int rank_, ranks_;
  Parts parts_;
};

}  // namespace corro::runtime
