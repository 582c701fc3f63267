#pragma once

#include "runtime/pattern/parts.h"
#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// The first half of the ring allreduce, shifted by one so that each rank ends with its own part.
//
//   n = 4       step 0   step 1   step 2      (send / recv part)
//   rank 0      3 / 2    2 / 1    1 / 0*
//   rank 1      0 / 3    3 / 2    2 / 1*
//   rank 2      1 / 0    0 / 3    3 / 2*
//   rank 3      2 / 1    1 / 0    0 / 3*
//
// `out` has room for the own part only, so partial results alternate between two halves of
// `scratch`, each as large as the largest part: one is sent while the other is received.  Every
// rank sends everything but its own part.
//
// All ranks have begun, and no silent mismatch: as for the ring allreduce.
class RingReducescatter final : public Schedule {
 public:
  RingReducescatter(int rank, Parts parts);

  int steps() const override { return ranks_ - 1; }
  Step step(int k) const override;
  LocalCopy local_copy() const override;
  std::size_t scratch() const override;

 private:
  Slice partial(int k, std::size_t size) const;  // what step k receives, unless it is the last

  int rank_, ranks_;
  Parts parts_;
  std::size_t largest_;
};

}  // namespace corro::runtime
