#include "runtime/pattern/recursive_halving_reducescatter.h"

#include <utility>

namespace corro::runtime {

RecursiveHalvingReducescatter::RecursiveHalvingReducescatter(int rank, Parts parts)
    : rank_(rank), world_(rank, parts.count()), parts_(std::move(parts)) {}

Step RecursiveHalvingReducescatter::step(int k) const {
  int round_index = k;
  if (world_.folds()) {
    const Range all{0, parts_.total()};
    const Range extra = world_.is_proxy() ? parts_[world_.extra()] : Range{};
    if (k == 0)
      return world_.fold({Buffer::in, all}, {Buffer::scratch, all}, {Buffer::in, all}, Act::reduce);
    if (k == steps() - 1) return world_.unfold({Buffer::scratch, extra}, own_part());
    if (k == steps() - 2) return second_of_last_round();
    --round_index;
  }
  if (world_.is_extra()) return {};
  const int distance = world_.size() >> (round_index + 1);
  return distance > 1 ? round(distance) : last_round();
}

Step RecursiveHalvingReducescatter::round(int distance) const {
  const int partner = world_.index() ^ distance, rank = world_.rank_at(partner);
  const Range keep = block(world_.index(), distance);
  return {.to = rank,
          .from = rank,
          .send = {source(distance), block(partner, distance)},
          .recv = {Buffer::scratch, keep},
          .operand = {source(distance), keep},
          .act = Act::reduce};
}

Step RecursiveHalvingReducescatter::last_round() const {
  const int rank = world_.rank_at(world_.index() ^ 1);
  return {.to = rank,
          .from = rank,
          .send = {source(1), parts_[rank]},
          .recv = own_part(),
          .operand = {source(1), parts_[rank_]},
          .act = Act::complete};
}

Step RecursiveHalvingReducescatter::second_of_last_round() const {
  if (world_.is_extra()) return {};
  const int partner = world_.index() ^ 1, rank = world_.rank_at(partner);
  Step step;
  if (world_.has_extra(partner)) {
    step.to = rank;
    step.send = {source(1), parts_[rank + 1]};
  }
  if (world_.is_proxy()) {
    step.from = rank;
    step.recv = step.operand = {Buffer::scratch, parts_[world_.extra()]};
    step.act = Act::complete;
  }
  return step;
}

LocalCopy RecursiveHalvingReducescatter::local_copy() const {
  if (world_.size() > 1) return {};
  return {{Buffer::in, parts_[0]}, {Buffer::out, parts_[0]}};
}

std::size_t RecursiveHalvingReducescatter::scratch() const {
  return world_.is_proxy() || (!world_.is_extra() && world_.size() > 2) ? parts_.total() : 0;
}

Buffer RecursiveHalvingReducescatter::source(int distance) const {
  return distance == world_.size() / 2 && !world_.is_proxy() ? Buffer::in : Buffer::scratch;
}

Range RecursiveHalvingReducescatter::block(int index, int size) const {
  const int first = index & ~(size - 1);
  return parts_.between(world_.rank_at(first), world_.rank_at(first + size));
}

}  // namespace corro::runtime
