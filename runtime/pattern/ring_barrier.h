#pragma once

#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// An empty message each way in each step.  A rank in step k has heard, through its neighbour, of
// the k ranks before it; after n-1 steps it knows that everyone has come.
class RingBarrier final : public Schedule {
 public:
  RingBarrier(int rank, int size) : rank_(rank), size_(size) {}

  int steps() const override { return size_ - 1; }
  Step step(int k) const override;

 private:
  int rank_, size_;
};

}  // namespace corro::runtime
