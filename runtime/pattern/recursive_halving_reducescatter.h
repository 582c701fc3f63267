#pragma once

#include "runtime/pattern/folded_world.h"
#include "runtime/pattern/parts.h"
#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// In each round two ranks split the parts that both still have between them.
//
//   n = 4       round 0      round 1        (partner: send / recv parts)
//   rank 0      2: 23 / 01   1: 1 / 0*
//   rank 1      3: 23 / 01   0: 0 / 1*
//   rank 2      0: 01 / 23   3: 3 / 2*
//   rank 3      1: 01 / 23   2: 2 / 3*
//
// log2(n) steps.  For other numbers of ranks than powers of two (folded_world.h) an index may
// stand for two ranks.  Then the last round has two steps: the first completes the proxy's own
// part in `out`, the second the extra rank's in `scratch`, from where the last step sends it.
//
//   n = 3       fold         round 0, first    round 0, second   unfold
//   rank 0      1: - / 012   2: 2 / 0*         2: - / 1*         1: 1 / -
//   rank 1      0: 012 / -                                       0: - / 1
//   rank 2                   0: 0 / 2*         0: 1 / -
//
// Partial results are in `scratch`, at their places in the whole buffer.
//
// The promises of schedule.h: folded_world.h.
class RecursiveHalvingReducescatter final : public Schedule {
 public:
  RecursiveHalvingReducescatter(int rank, Parts parts);

  int steps() const override { return world_.rounds() + (world_.folds() ? 3 : 0); }
  Step step(int k) const override;
  LocalCopy local_copy() const override;
  std::size_t scratch() const override;

 private:
  Step round(int distance) const;
  Step last_round() const;
  Step second_of_last_round() const;
  Buffer source(int distance) const;  // where this rank's partial results are before a round
  Range block(int index, int size) const;
  Slice own_part() const { return {Buffer::out, {0, parts_[rank_].size()}}; }

  int rank_;
  FoldedWorld world_;
  Parts parts_;
};

}  // namespace corro::runtime
