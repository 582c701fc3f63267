#pragma once

#include <bit>

#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// Recursive algorithms pair ranks whose indexes differ in one bit, so they need a power of two.
// From any other number of ranks the extra ones are folded away: in a first step each gives its
// data to the rank before it, its proxy, and in a last step the proxy gives it the result.
//
//   7 ranks     0 ← 1   2 ← 3   4 ← 5   6       extras 1, 3, 5; proxies 0, 2, 4
//   4 indexes   0       1       2       3
//
// Indexes are in the order of ranks, so neighbouring indexes stand for neighbouring ranks, and
// their parts of a buffer are neighbours too.
//
// Why recursive algorithms keep the promises of schedule.h:
//  - All ranks have begun: after its rounds each proxy, and each rank without an extra, has
//    messages from all indexes, directly or through others, and the proxies' came after those of
//    their extras; an extra rank's last message is from its proxy after the rounds.
//  - No silent mismatch: in rounds two ranks exchange messages, so a rank that waits for another
//    has sent it one; the fold is such an exchange too, because the proxy sends an empty message.
//    Without it a proxy could wait for its extra rank before it has sent anything, and if that
//    rank is in another operation and waits for the proxy, both would do so for ever.
class FoldedWorld {
 public:
  FoldedWorld(int rank, int ranks)
      : rank_(rank),
        size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        extras_(ranks - size_) {}

  int size() const { return size_; }  // the largest power of two up to the number of ranks
  int rounds() const { return std::countr_zero(static_cast<unsigned>(size_)); }

  bool folds() const { return extras_ > 0; }
  bool is_extra() const { return rank_ < 2 * extras_ && rank_ % 2 == 1; }
  bool is_proxy() const { return rank_ < 2 * extras_ && rank_ % 2 == 0; }
  int extra() const { return rank_ + 1; }  // of a proxy
  int proxy() const { return rank_ - 1; }  // of an extra rank

  int index() const { return rank_ < 2 * extras_ ? rank_ / 2 : rank_ - extras_; }
  bool has_extra(int index) const { return index < extras_; }

  // The rank that acts for an index, and for index `size` the number of ranks: the ranks of
  // indexes [a, b) are [rank_at(a), rank_at(b)).
  int rank_at(int index) const { return index < extras_ ? 2 * index : index + extras_; }

  // The first step, if the world folds.  The extra rank sends `send`; its proxy receives it.
  Step fold(Slice send, Slice recv, Slice operand, Act) const;

  // The last step, if the world folds.  The proxy sends `send`; its extra rank receives it.
  Step unfold(Slice send, Slice recv) const;

 private:
  int rank_, size_, extras_;
};

}  // namespace corro::runtime
