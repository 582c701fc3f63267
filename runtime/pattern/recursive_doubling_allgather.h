#pragma once

#include "runtime/pattern/folded_world.h"
#include "runtime/pattern/parts.h"
#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// Two ranks exchange their parts; then pairs of pairs exchange theirs, and so on.
//
//   n = 4       round 0     round 1        (partner: send / recv parts)
//   rank 0      1: 0 / 1    2: 01 / 23
//   rank 1      0: 1 / 0    3: 01 / 23
//   rank 2      3: 2 / 3    0: 23 / 01
//   rank 3      2: 3 / 2    1: 23 / 01
//
// log2(n) steps with no more bytes than the ring.  For other numbers of ranks than powers of two
// a last step sends everything once more (folded_world.h), which for small parts is still less
// than the n-1 steps of a ring.
//
// The promises of schedule.h: folded_world.h.
class RecursiveDoublingAllgather final : public Schedule {
 public:
  RecursiveDoublingAllgather(int rank, Parts parts);

  int steps() const override { return world_.rounds() + (world_.folds() ? 2 : 0); }
  Step step(int k) const override;
  LocalCopy local_copy() const override;

 private:
  Slice block(int index, int size) const;  // the parts of the aligned block with this index

  int rank_;
  FoldedWorld world_;
  Parts parts_;
};

}  // namespace corro::runtime
