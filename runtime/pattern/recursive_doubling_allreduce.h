#pragma once

#include "runtime/pattern/folded_world.h"
#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// Two ranks exchange the whole buffer and both add; then pairs of pairs do, and so on.
//
//   n = 4       round 0       round 1
//   rank 0      1: a / b      2: ab / cd*          a, b, c, d: the ranks' tensors
//   rank 1      0: b / a      3: ab / cd*
//   rank 2      3: c / d      0: cd / ab*
//   rank 3      2: d / c      1: cd / ab*
//
// The fewest steps, log2(n), and log2(n) times the buffer in bytes: for small tensors.  For other
// numbers of ranks than powers of two: folded_world.h.
//
// Every rank computes every element, in the same tree: (ab)(cd).  Partners have the operands of an
// addition in different order, and the kernels are commutative to the bit.
//
// What is sent must not change in the same step, so partial results alternate between `out` and
// `scratch` and the last is in `out`.  With an odd number of rounds the first would be in `out`
// too; as `in` may be the same memory, it is first copied to `scratch` and sent from there.
class RecursiveDoublingAllreduce final : public Schedule {
 public:
  RecursiveDoublingAllreduce(int rank, int ranks, std::size_t count)
      : world_(rank, ranks), count_(count) {}

  int steps() const override { return world_.rounds() + (world_.folds() ? 2 : 0); }
  Step step(int k) const override;
  LocalCopy local_copy() const override;
  std::size_t scratch() const override;

 private:
  int reductions() const { return world_.rounds() + (world_.is_proxy() ? 1 : 0); }
  bool copies_first() const;
  Slice partial(int reductions) const;  // where the buffer is after so many reductions

  FoldedWorld world_;
  std::size_t count_;
};

}  // namespace corro::runtime
