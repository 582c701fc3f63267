#include "runtime/pattern/pairwise_reducescatter.h"

#include <utility>

#include "runtime/pattern/ring.h"

namespace corro::runtime {

PairwiseReducescatter::PairwiseReducescatter(int rank, Parts parts)
    : rank_(rank), ranks_(parts.count()), parts_(std::move(parts)) {}

Step PairwiseReducescatter::step(int k) const {
  const int to = ring_shift(rank_, k + 1, ranks_);
  const Range own = parts_[rank_], sum{0, own.size()};
  return {.to = to,
          .from = ring_shift(rank_, -k - 1, ranks_),
          .send = {Buffer::in, parts_[to]},
          .recv = {Buffer::out, sum},
          .operand = k == 0 ? Slice{Buffer::in, own} : Slice{Buffer::out, sum},
          .act = k == ranks_ - 2 ? Act::complete : Act::reduce};
}

LocalCopy PairwiseReducescatter::local_copy() const {
  if (ranks_ > 1) return {};
  return {{Buffer::in, parts_[0]}, {Buffer::out, parts_[0]}};
}

}  // namespace corro::runtime
