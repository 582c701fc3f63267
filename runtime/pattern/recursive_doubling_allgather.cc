#include "runtime/pattern/recursive_doubling_allgather.h"

#include <utility>

namespace corro::runtime {

RecursiveDoublingAllgather::RecursiveDoublingAllgather(int rank, Parts parts)
    : rank_(rank), world_(rank, parts.count()), parts_(std::move(parts)) {}

Step RecursiveDoublingAllgather::step(int k) const {
  int round = k;
  if (world_.folds()) {
    const Slice all{Buffer::out, {0, parts_.total()}};
    const int extra = world_.is_proxy() ? world_.extra() : rank_;
    const Slice part{Buffer::out, parts_[extra]};
    if (k == 0) return world_.fold(part, part, {}, Act::copy);
    if (k == steps() - 1) return world_.unfold(all, all);
    --round;
  }
  if (world_.is_extra()) return {};
  const int distance = 1 << round, partner = world_.index() ^ distance;
  return {.to = world_.rank_at(partner),
          .from = world_.rank_at(partner),
          .send = block(world_.index(), distance),
          .recv = block(partner, distance)};
}

LocalCopy RecursiveDoublingAllgather::local_copy() const {
  const Range own = parts_[rank_];
  return {{Buffer::in, {0, own.size()}}, {Buffer::out, own}};
}

Slice RecursiveDoublingAllgather::block(int index, int size) const {
  const int first = index & ~(size - 1);
  return {Buffer::out, parts_.between(world_.rank_at(first), world_.rank_at(first + size))};
}

}  // namespace corro::runtime
