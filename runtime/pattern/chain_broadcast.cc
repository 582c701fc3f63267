#include "runtime/pattern/chain_broadcast.h"

#include "runtime/pattern/ring.h"

namespace corro::runtime {

// An empty buffer is one empty chunk.
ChainBroadcast::ChainBroadcast(int rank, int ranks, int root, std::size_t count, std::size_t chunk)
    : rank_(rank),
      ranks_(ranks),
      distance_(ring_shift(rank, -root, ranks)),
      count_(count),
      chunk_(chunk),
      chunks_(count == 0 ? 1 : static_cast<int>((count - 1) / chunk + 1)) {}

Step ChainBroadcast::step(int k) const {
  const int sent = k - distance_, received = sent + 1;
  Step step;
  if (distance_ < ranks_ - 1 && is_chunk(sent)) {
    step.to = ring_next(rank_, ranks_);
    step.send = {distance_ == 0 ? Buffer::in : Buffer::out, chunk(sent)};
  }
  if (distance_ > 0 && is_chunk(received)) {
    step.from = ring_previous(rank_, ranks_);
    step.recv = {Buffer::out, chunk(received)};
  }
  return step;
}

LocalCopy ChainBroadcast::local_copy() const {
  if (distance_ != 0) return {};
  return {{Buffer::in, {0, count_}}, {Buffer::out, {0, count_}}};
}

Range ChainBroadcast::chunk(int index) const {
  const std::size_t begin = static_cast<std::size_t>(index) * chunk_;
  return {begin, std::min(begin + chunk_, count_)};
}

}  // namespace corro::runtime
