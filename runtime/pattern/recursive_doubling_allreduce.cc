#include "runtime/pattern/recursive_doubling_allreduce.h"

namespace corro::runtime {

Step RecursiveDoublingAllreduce::step(int k) const {
  int round = k;
  if (world_.folds()) {
    const Slice in{Buffer::in, {0, count_}}, out{Buffer::out, {0, count_}};
    if (k == 0) return world_.fold(in, partial(1), in, Act::reduce);
    if (k == steps() - 1) return world_.unfold(out, out);
    --round;
  }
  if (world_.is_extra()) return {};
  const int rank = world_.rank_at(world_.index() ^ (1 << round));
  const int before = round + (world_.is_proxy() ? 1 : 0);
  return {.to = rank,
          .from = rank,
          .send = partial(before),
          .recv = partial(before + 1),
          .operand = partial(before),
          .act = round == world_.rounds() - 1 ? Act::complete : Act::reduce};
}

LocalCopy RecursiveDoublingAllreduce::local_copy() const {
  const Slice in{Buffer::in, {0, count_}};
  if (world_.size() == 1) return {in, {Buffer::out, {0, count_}}};
  if (copies_first()) return {in, partial(0)};
  return {};
}

std::size_t RecursiveDoublingAllreduce::scratch() const {
  return world_.size() == 1 || world_.is_extra() ? 0 : count_;
}

// A proxy sends nothing in its first reduction.
bool RecursiveDoublingAllreduce::copies_first() const {
  return !world_.is_extra() && !world_.is_proxy() && world_.rounds() % 2 == 1;
}

Slice RecursiveDoublingAllreduce::partial(int after) const {
  const Range all{0, count_};
  if (after == 0) return {copies_first() ? Buffer::scratch : Buffer::in, all};
  return {(reductions() - after) % 2 == 0 ? Buffer::out : Buffer::scratch, all};
}

}  // namespace corro::runtime
