#pragma once

#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// From the root along the ring, in chunks, so that all links work at the same time.  `distance`
// is how far a rank is behind the root.
//
//   3 chunks    step 0   step 1   step 2   step 3   step 4      (send / recv chunk)
//   distance 0  0 / -    1 / -    2 / -    - / -    - / -
//   distance 1  - / 0    0 / 1    1 / 2    2 / -    - / -
//   distance 2  - / -    - / 0    0 / 1    1 / 2    2 / -
//   distance 3  - / -    - / -    - / 0    - / 1    - / 2
//
// Every rank sends the buffer once at most, and the last has it after chunks + n - 2 steps.
//
// The chain alone keeps neither of the promises about other ranks: news flow from the root only,
// and ranks that disagree about the root could wait for each other.  So it comes after a barrier
// (sequence.h), which keeps both.
class ChainBroadcast final : public Schedule {
 public:
  ChainBroadcast(int rank, int ranks, int root, std::size_t count, std::size_t chunk);

  int steps() const override { return ranks_ == 1 ? 0 : chunks_ + ranks_ - 2; }
  Step step(int k) const override;
  LocalCopy local_copy() const override;

 private:
  bool is_chunk(int index) const { return index >= 0 && index < chunks_; }
  Range chunk(int index) const;

  int rank_, ranks_, distance_;
  std::size_t count_, chunk_;
  int chunks_;
};

}  // namespace corro::runtime
