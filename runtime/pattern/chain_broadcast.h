#pragma once

#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// From the root along the ring, in chunks, so that all links work at the same time.  `distance`
// is how far a rank is from the root.
//
//   3 chunks    step 0   step 1   step 2   step 3   step 4      (send / recv chunk)
//   distance 0  0 / -    1 / -    2 / -    - / -    - / -
//   distance 1  - / 0    0 / 1    1 / 2    2 / -    - / -
//   distance 2  - / -    - / 0    0 / 1    1 / 2    2 / -
//   distance 3  - / -    - / -    - / 0    - / 1    - / 2
//
// Every rank sends the buffer once at most, and the last has it after chunks + n - 2 steps.
class ChainBroadcast final : public Schedule {
 public:
  ChainBroadcast(int rank, int size, int root, std::size_t count, std::size_t chunk);

  int steps() const override { return size_ == 1 ? 0 : chunks_ + size_ - 2; }
  Step step(int k) const override;

 private:
  bool is_chunk(int index) const { return index >= 0 && index < chunks_; }
  Range chunk(int index) const;

  int rank_, size_, distance_;
  std::size_t count_, chunk_;
  int chunks_;
};

}  // namespace corro::runtime
