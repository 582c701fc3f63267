#include "runtime/pattern/pairwise_alltoall.h"

#include "runtime/pattern/ring.h"

namespace corro::runtime {

PairwiseAlltoall::PairwiseAlltoall(int rank, std::span<const std::uint64_t> sends,
                                   std::span<const std::uint64_t> receives)
    : rank_(rank), ranks_(static_cast<int>(sends.size())), sends_(sends), receives_(receives) {}

Step PairwiseAlltoall::step(int k) const {
  const int to = ring_shift(rank_, k + 1, ranks_), from = ring_shift(rank_, -k - 1, ranks_);
  return {.to = to,
          .from = from,
          .send = {Buffer::in, sends_[to]},
          .recv = {Buffer::out, receives_[from]}};
}

LocalCopy PairwiseAlltoall::local_copy() const {
  return {{Buffer::in, sends_[rank_]}, {Buffer::out, receives_[rank_]}};
}

}  // namespace corro::runtime
