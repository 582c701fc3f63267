#include "runtime/pattern/chain_broadcast.h"

#include "runtime/pattern/ring.h"

namespace corro::runtime {

// An empty buffer is one empty chunk: the ranks still meet, and still find out if they meant
// different things.
ChainBroadcast::ChainBroadcast(int rank, int size, int root, std::size_t count, std::size_t chunk)
    : rank_(rank),
      size_(size),
      distance_((rank - root + size) % size),
      count_(count),
      chunk_(chunk),
      chunks_(static_cast<int>(std::max<std::size_t>(1, (count + chunk - 1) / chunk))) {}

Step ChainBroadcast::step(int k) const {
  const int sent = k - distance_, received = sent + 1;
  Step step;
  if (distance_ < size_ - 1 && is_chunk(sent)) {
    step.to = ring_next(rank_, size_);
    step.send = chunk(sent);
  }
  if (distance_ > 0 && is_chunk(received)) {
    step.from = ring_previous(rank_, size_);
    step.recv = chunk(received);
  }
  return step;
}

Range ChainBroadcast::chunk(int index) const {
  const std::size_t begin = static_cast<std::size_t>(index) * chunk_;
  return {begin, std::min(begin + chunk_, count_)};
}

}  // namespace corro::runtime
