#include "runtime/pattern/ring_reducescatter.h"

#include <utility>

#include "runtime/pattern/ring.h"

namespace corro::runtime {

RingReducescatter::RingReducescatter(int rank, Parts parts)
    : rank_(rank), ranks_(parts.count()), parts_(std::move(parts)), largest_(parts_.largest()) {}

Step RingReducescatter::step(int k) const {
  const Range send = parts_[ring_shift(rank_, -1 - k, ranks_)];
  const Range recv = parts_[ring_shift(rank_, -2 - k, ranks_)];
  const bool last = k == ranks_ - 2;
  return {.to = ring_next(rank_, ranks_),
          .from = ring_previous(rank_, ranks_),
          .send = k == 0 ? Slice{Buffer::in, send} : partial(k - 1, send.size()),
          .recv = last ? Slice{Buffer::out, {0, recv.size()}} : partial(k, recv.size()),
          .operand = {Buffer::in, recv},
          .act = last ? Act::complete : Act::reduce};
}

LocalCopy RingReducescatter::local_copy() const {
  if (ranks_ > 1) return {};
  return {{Buffer::in, parts_[0]}, {Buffer::out, parts_[0]}};
}

// Two ranks need no partial results, and three never have two at once.
std::size_t RingReducescatter::scratch() const {
  return static_cast<std::size_t>(std::clamp(ranks_ - 2, 0, 2)) * largest_;
}

Slice RingReducescatter::partial(int k, std::size_t size) const {
  const std::size_t begin = k % 2 == 0 ? 0 : largest_;
  return {Buffer::scratch, {begin, begin + size}};
}

}  // namespace corro::runtime
