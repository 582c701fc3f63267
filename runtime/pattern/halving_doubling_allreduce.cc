#include "runtime/pattern/halving_doubling_allreduce.h"

namespace corro::runtime {

Step HalvingDoublingAllreduce::step(int k) const {
  const Slice in{Buffer::in, {0, count_}}, out{Buffer::out, {0, count_}};
  if (world_.folds()) {
    if (k == 0) return world_.fold(in, out, in, Act::reduce);
    if (k == steps() - 1) return world_.unfold(out, out);
    --k;
  }
  if (world_.is_extra()) return {};
  const int rounds = world_.rounds();
  return k < rounds ? halving(world_.size() >> (k + 1)) : doubling(1 << (k - rounds));
}

Step HalvingDoublingAllreduce::halving(int distance) const {
  const int partner = world_.index() ^ distance, rank = world_.rank_at(partner);
  const bool first = distance == world_.size() / 2 && !world_.is_proxy();
  const Buffer source = first ? Buffer::in : Buffer::out;
  const Range keep = block(world_.index(), distance);
  return {.to = rank,
          .from = rank,
          .send = {source, block(partner, distance)},
          .recv = {Buffer::out, keep},
          .operand = {source, keep},
          .act = distance == 1 ? Act::complete : Act::reduce};
}

Step HalvingDoublingAllreduce::doubling(int distance) const {
  const int partner = world_.index() ^ distance, rank = world_.rank_at(partner);
  return {.to = rank,
          .from = rank,
          .send = {Buffer::out, block(world_.index(), distance)},
          .recv = {Buffer::out, block(partner, distance)}};
}

LocalCopy HalvingDoublingAllreduce::local_copy() const {
  if (world_.size() > 1) return {};
  return {{Buffer::in, {0, count_}}, {Buffer::out, {0, count_}}};
}

Range HalvingDoublingAllreduce::block(int index, int size) const {
  const int first = index & ~(size - 1);
  return {part_of(count_, world_.size(), first).begin,
          part_of(count_, world_.size(), first + size - 1).end};
}

}  // namespace corro::runtime
