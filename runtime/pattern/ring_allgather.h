#pragma once

#include "runtime/pattern/parts.h"
#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// Each rank puts its own part into `out`; then the parts go round the ring.
//
//   n = 4       step 0   step 1   step 2      (send / recv part)
//   rank 0      0 / 3    3 / 2    2 / 1
//   rank 1      1 / 0    0 / 3    3 / 2
//   rank 2      2 / 1    1 / 0    0 / 3
//   rank 3      3 / 2    2 / 1    1 / 0
//
// Every rank sends everything but the next rank's part.
//
// All ranks have begun, and no silent mismatch: as for the ring allreduce.
class RingAllgather final : public Schedule {
 public:
  RingAllgather(int rank, Parts parts);

  int steps() const override { return ranks_ - 1; }
  Step step(int k) const override;
  LocalCopy local_copy() const override;

 private:
  int rank_, ranks_;
  Parts parts_;
};

}  // namespace corro::runtime
