#include "runtime/collective/execution.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "runtime/collective/kernels.h"

namespace corro::runtime {

Execution::Execution(const Schedule& schedule, Links& links, const Header& header, int ranks,
                     MutByteView data, Bytes& scratch)
    : schedule_(schedule),
      links_(links),
      header_(header),
      ranks_(ranks),
      data_(data),
      scratch_(scratch) {
  CORRO_ASSERT(data.size() == header.operation.bytes() && scratch.size() == kPieceBytes);
}

Outcome<bool> Execution::advance() {
  while (at_ < schedule_.steps()) {
    if (!begun_) begin();
    const auto moved = move();
    if (!moved) return moved;
    if (step_is_done()) {
      ++at_;
      begun_ = false;
    } else if (!*moved) {
      return false;
    }
  }
  return true;
}

void Execution::begin() {
  begun_ = true;
  step_ = schedule_.step(at_);
  to_ = step_.to == kNobody ? nullptr : links_.at(step_.to).get();
  from_ = step_.from == kNobody ? nullptr : links_.at(step_.from).get();
  if (to_) to_->send(stamp(step_.send), elements(step_.send));
  if (from_) from_->expect(stamp(step_.recv));
  target_ = elements(step_.recv);
}

// Sends what goes and takes one piece of what has come: both directions in turn.
Outcome<bool> Execution::move() {
  bool moved = false;
  for (Endpoint* link : {to_, from_ == to_ ? nullptr : from_}) {
    if (!link) continue;
    const auto progress = link->progress();
    if (!progress) return progress;
    moved |= *progress;
  }
  if (!from_ || from_->received()) return moved;
  const auto taken = step_.act == Act::copy ? copy_arrived() : reduce_arrived();
  if (!taken) return taken.error();
  return moved || *taken > 0;
}

Outcome<std::size_t> Execution::copy_arrived() {
  const auto taken = from_->take(target_.first(std::min(target_.size(), kPieceBytes)));
  if (taken) target_ = target_.subspan(*taken);
  return taken;
}

Outcome<std::size_t> Execution::reduce_arrived() {
  const auto taken = from_->take(MutByteView(scratch_).subspan(held_));
  if (!taken || *taken == 0) return taken;
  held_ += *taken;

  const Operation& op = header_.operation;
  const std::size_t whole = held_ - held_ % size_of(op.type);
  reduce(op.reduction, op.type, target_.first(whole), ByteView(scratch_).first(whole));
  if (step_.act == Act::complete) finish(op.reduction, op.type, target_.first(whole), ranks_);
  target_ = target_.subspan(whole);
  std::memmove(scratch_.data(), scratch_.data() + whole, held_ - whole);
  held_ -= whole;
  return taken;
}

bool Execution::step_is_done() const {
  return (!to_ || to_->sent()) && (!from_ || from_->received());
}

const Peer& Execution::awaited() const {
  CORRO_ASSERT(begun_);
  return from_ && !from_->received() ? from_->peer() : to_->peer();
}

MutByteView Execution::elements(Range range) const {
  const std::size_t size = size_of(header_.operation.type);
  return data_.subspan(range.begin * size, range.size() * size);
}

Header Execution::stamp(Range range) const {
  Header header = header_;
  header.step = static_cast<std::uint32_t>(at_);
  header.bytes = range.size() * size_of(header_.operation.type);
  return header;
}

}  // namespace corro::runtime
