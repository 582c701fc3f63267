#include "runtime/pattern/ring_allgather.h"

#include <utility>

#include "runtime/pattern/ring.h"

namespace corro::runtime {

RingAllgather::RingAllgather(int rank, Parts parts)
    : rank_(rank), ranks_(parts.count()), parts_(std::move(parts)) {}

Step RingAllgather::step(int k) const {
  return {.to = ring_next(rank_, ranks_),
          .from = ring_previous(rank_, ranks_),
          .send = {Buffer::out, parts_[ring_shift(rank_, -k, ranks_)]},
          .recv = {Buffer::out, parts_[ring_shift(rank_, -k - 1, ranks_)]}};
}

LocalCopy RingAllgather::local_copy() const {
  const Range own = parts_[rank_];
  return {{Buffer::in, {0, own.size()}}, {Buffer::out, own}};
}

}  // namespace corro::runtime
