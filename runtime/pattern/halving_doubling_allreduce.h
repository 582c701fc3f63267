#pragma once

#include "runtime/pattern/folded_world.h"
#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// Rabenseifner's allreduce: recursive halving, then recursive doubling.  In each of the first
// log2(n) rounds two ranks split the chunks that both still have between them; in the others they
// exchange what is complete.
//
//   n = 4       round 0    round 1 │ round 2    round 3       (partner: send / recv chunks)
//   rank 0      2: 23/01   1: 1/0* │ 1: 0/1     2: 01/23
//   rank 1      3: 23/01   0: 0/1* │ 0: 1/0     3: 01/23
//   rank 2      0: 01/23   3: 3/2* │ 3: 2/3     0: 23/01
//   rank 3      1: 01/23   2: 2/3* │ 2: 3/2     1: 23/01
//                    reduce        │       copy
//
// As few bytes as the ring, 2(n-1)/n of the buffer, in 2 log2(n) steps.  For other numbers of
// ranks than powers of two a step before and one after carry the whole buffer (folded_world.h).
//
// A chunk is complete on one rank before it is copied, so all ranks have the same bits.  The other
// promises: folded_world.h.
class HalvingDoublingAllreduce final : public Schedule {
 public:
  HalvingDoublingAllreduce(int rank, int ranks, std::size_t count)
      : world_(rank, ranks), count_(count) {}

  int steps() const override { return 2 * world_.rounds() + (world_.folds() ? 2 : 0); }
  Step step(int k) const override;
  LocalCopy local_copy() const override;

 private:
  Step halving(int distance) const;
  Step doubling(int distance) const;
  Range block(int index, int size) const;  // the chunks of the aligned block with this index

  FoldedWorld world_;
  std::size_t count_;
};

}  // namespace corro::runtime
