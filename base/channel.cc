#include "base/channel.h"

#include <array>

#include "base/socket.h"

namespace kolo {

namespace {

constexpr std::size_t kReadBytes = 64 * 1024;

}  // namespace

Channel::Channel(Loop& loop, Fd in, Fd out, std::size_t body_limit, std::optional<Proof> proof,
                 Events events)
    : loop_(loop),
      in_(std::move(in)),
      out_(std::move(out)),
      reader_(body_limit),
      proof_(std::move(proof)),
      events_(std::move(events)) {
  readable_ = loop_.watch(in_.get(), Ready::read, [this] { on_readable(); });
  if (proof_) queue(proof_->opening());
}

void Channel::queue(Bytes bytes) {
  if (ended_) return;
  append(outgoing_, bytes);
  if (!writable_) write_now();
}

void Channel::write_now() {
  while (backlog() > 0) {
    const auto moved = write_some(out(), ByteView(outgoing_).subspan(written_));
    // Whoever went away may have left words that are still to be read; the reading side ends it.
    if (!moved) {
      outgoing_.clear();
      written_ = 0;
      writable_ = {};
      return;
    }
    written_ += moved->bytes;
    if (moved->again) {
      if (!writable_) writable_ = loop_.watch(out(), Ready::write, [this] { write_now(); });
      return;
    }
  }
  outgoing_.clear();
  written_ = 0;
  writable_ = {};
}

void Channel::flush(Deadline deadline) {
  const bool all = bool(write_all(out(), ByteView(outgoing_).subspan(written_), deadline));
  if (all) written_ = outgoing_.size();
}

void Channel::on_readable() {
  std::array<std::uint8_t, kReadBytes> buffer;
  const auto moved = read_some(in_.get(), buffer);
  if (!moved) return end(moved.error());
  if (moved->again) return;
  if (moved->bytes == 0) {
    const bool whole = !proof_ && reader_.between_frames();
    return end(whole ? Error(Errc::closed, "the other side closed the connection")
                     : Error(Errc::malformed, "the connection ended in the middle of a message"));
  }
  if (auto taken = take(ByteView(buffer).first(moved->bytes)); !taken) end(taken.error());
}

Result<Unit> Channel::take(ByteView bytes) {
  if (proof_) {
    Bytes reply;
    const auto used = proof_->feed(bytes, reply);
    if (!used) return used.error();
    queue(std::move(reply));
    if (!proof_->done()) return Unit{};
    proof_.reset();
    bytes = bytes.subspan(*used);
    if (events_.on_proved) events_.on_proved();
  }
  return reader_.feed(bytes, events_.on_frame);
}

void Channel::end(Error why) {
  if (std::exchange(ended_, true)) return;
  readable_ = {};
  writable_ = {};
  events_.on_end(why);
}

}  // namespace kolo
