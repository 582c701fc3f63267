#pragma once

#include <cstdint>
#include <span>

#include "runtime/pattern/parts.h"
#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// Every rank sends each other rank its part directly, one after the other.
//
//   n = 4       step 0   step 1   step 2      (to / from)
//   rank 0      1 / 3    2 / 2    3 / 1
//   rank 1      2 / 0    3 / 3    0 / 2
//   rank 2      3 / 1    0 / 0    1 / 3
//   rank 3      0 / 2    1 / 1    2 / 0
//
// In each step every rank sends to one and receives from one, so no receiver is overrun.  Parts
// of any size; also empty ones are sent.  Not in place.
//
// All ranks have begun: each rank receives a message from every other rank.  No silent mismatch:
// in step 0 each rank sends to the next on the ring.
class PairwiseAlltoall final : public Schedule {
 public:
  // Elements to and from each rank.
  PairwiseAlltoall(int rank, std::span<const std::uint64_t> sends,
                   std::span<const std::uint64_t> receives);

  int steps() const override { return ranks_ - 1; }
  Step step(int k) const override;
  LocalCopy local_copy() const override;

 private:
  int rank_, ranks_;
  Parts sends_, receives_;
};

}  // namespace corro::runtime
