#include "runtime/group/execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace corro::runtime {

namespace {

Pieces as_readable(const MutPieces& pieces) {
  if (pieces.contiguous())
    return Pieces(pieces.pieces().empty() ? Pieces::Piece() : Pieces::Piece(pieces.pieces()[0]));
  return Pieces(std::vector<Pieces::Piece>(pieces.pieces().begin(), pieces.pieces().end()));
}

}  // namespace

Execution::Execution(Task task, Links& links, Bytes& piece, Bytes& scratch)
    : task_(std::move(task)), links_(links), piece_(piece), element_(size_of(task_.type)) {
  const std::size_t needed = task_.schedule->scratch() * element_;
  if (scratch.size() < needed) scratch.resize(needed);
  scratch_ = MutPieces(MutByteView(scratch).first(needed));
  out_read_ = as_readable(task_.buffers.out);
  scratch_read_ = as_readable(scratch_);
  copy_locally(task_.schedule->local_copy());
}

// Where both are the same memory there is nothing to copy.
void Execution::copy_locally(const LocalCopy& local) {
  if (local.empty()) return;
  const Range from = bytes_of(local.from.range), to = bytes_of(local.to.range);
  for (std::size_t done = 0; done < from.size();) {
    const auto source = readable(local.from.buffer).at(from.begin + done, from.size() - done);
    const auto target = writable(local.to.buffer).at(to.begin + done, source.size());
    if (target.data() != source.data()) copy(target, ByteView(source).first(target.size()));
    done += target.size();
  }
}

Outcome<bool> Execution::advance() {
  moved_ = false;
  while (at_ < task_.schedule->steps()) {
    if (!begun_) {
      const auto ready = begin();
      if (!ready || !*ready) return ready;
    }
    const auto moved = move();
    if (!moved) return moved;
    moved_ |= *moved;
    if (step_is_done()) {
      ++at_;
      begun_ = false;
    } else if (!*moved) {
      return false;
    }
  }
  return true;
}

// False while a link is still being made.
Outcome<bool> Execution::begin() {
  step_ = task_.schedule->step(at_);
  for (auto [index, place] : {std::pair(step_.to, &to_), std::pair(step_.from, &from_)}) {
    *place = nullptr;
    if (index == kNobody) continue;
    const auto link = links_.link(index);
    if (!link) return link.error();
    if (!*link) return false;
    *place = *link;
  }
  begun_ = true;
  done_ = held_ = 0;
  if (from_) {
    const Header header = header_for(step_.recv.range.size() * element_);
    from_->expect({header, task_.description});
  }
  if (to_) {
    Header header = header_for(step_.send.range.size() * element_);
    const auto to = static_cast<std::size_t>(step_.to);
    if (described_.size() <= to) described_.resize(to + 1);
    std::string_view description;
    if (!described_[to]) description = task_.description;
    described_[to] = true;
    header.description_bytes = static_cast<std::uint16_t>(description.size());
    to_->send(header, description, {&readable(step_.send.buffer), bytes_of(step_.send.range)});
  }
  return true;
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
  const Range range = bytes_of(step_.recv.range);
  const std::size_t left = std::min(range.size() - done_, kPieceBytes);
  if (left == 0) return from_->take({});
  const auto taken = from_->take(writable(step_.recv.buffer).at(range.begin + done_, left));
  if (taken) done_ += *taken;
  return taken;
}

Outcome<std::size_t> Execution::reduce_arrived() {
  const auto taken = from_->take(MutByteView(piece_).subspan(held_));
  if (!taken || *taken == 0) return taken;
  held_ += *taken;
  const std::size_t whole = held_ - held_ % element_;
  combine(whole);
  std::memmove(piece_.data(), piece_.data() + whole, held_ - whole);
  held_ -= whole;
  return taken;
}

// The first bytes of the piece buffer with the operand; buffers may be cut anywhere between
// elements.
void Execution::combine(std::size_t bytes) {
  const Range into = bytes_of(step_.recv.range), operand = bytes_of(step_.operand.range);
  for (std::size_t used = 0; used < bytes;) {
    const auto target = writable(step_.recv.buffer).at(into.begin + done_, bytes - used);
    const auto other = readable(step_.operand.buffer).at(operand.begin + done_, target.size());
    const MutByteView part = target.first(other.size());
    reduce(task_.finish.reduction, task_.type, part, other,
           ByteView(piece_).subspan(used, other.size()));
    if (step_.act == Act::complete && !task_.finish.nothing()) finish(task_.finish, part);
    used += other.size();
    done_ += other.size();
  }
}

bool Execution::step_is_done() const {
  return (!to_ || to_->sent()) && (!from_ || from_->received());
}

int Execution::awaited() const {
  if (!begun_) return step_.from == kNobody || from_ ? step_.to : step_.from;
  return from_ && !from_->received() ? step_.from : step_.to;
}

std::string Execution::where() const {
  return fmt::format(" in step {} of {}", at_ + 1, task_.schedule->steps());
}

const Pieces& Execution::readable(Buffer buffer) const {
  if (buffer == Buffer::in) return task_.buffers.in;
  return buffer == Buffer::out ? out_read_ : scratch_read_;
}

const MutPieces& Execution::writable(Buffer buffer) const {
  CORRO_ASSERT(buffer != Buffer::in);
  return buffer == Buffer::out ? task_.buffers.out : scratch_;
}

Header Execution::header_for(std::size_t bytes) const {
  Header header;
  header.tag = task_.tag;
  header.tag.step = static_cast<std::uint32_t>(at_);
  header.digest = task_.digest;
  header.bytes = bytes;
  return header;
}

}  // namespace corro::runtime
