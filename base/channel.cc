#include "base/channel.h"

#include <array>

#include "base/socket.h"

namespace corro {

namespace {

constexpr std::size_t kReadBytes = 256 * 1024;
constexpr auto kTogether = std::chrono::milliseconds(10);
constexpr std::size_t kTogetherBytes = 16 * 1024;

}  // namespace

Channel::Channel(Loop& loop, Fd in, Fd out, std::size_t body_limit, std::optional<Proof> proof,
                 Events events)
    : loop_(loop),
      in_(std::move(in)),
      out_(std::move(out)),
      reader_(body_limit),
      proof_(std::move(proof)),
      events_(std::move(events)) {
  CORRO_ASSERT(set_nonblocking(in_.get()) && (!out_ || set_nonblocking(out_.get())));
  readable_ = loop_.watch(in_.get(), Ready::read, [this] { on_readable(); });
  if (proof_) queue(proof_->opening());
}

void Channel::queue(Bytes bytes) {
  if (ended_) return;
  append(outgoing_, bytes);
  const bool may_wait =
      answering_since_ && backlog() < kTogetherBytes && loop_.now() < *answering_since_ + kTogether;
  if (!writable_ && !may_wait) write_now();
}

void Channel::write_now() {
  if (answering_since_) answering_since_ = loop_.now();
  while (backlog() > 0) {
    const auto moved = write_some(out(), ByteView(outgoing_).subspan(written_));
    // Whoever went away may have left words that are still to be read; the reading side ends it.
    if (!moved) {
      written_ = outgoing_.size();
      break;
    }
    written_ += moved->bytes;
    if (moved->again) {
      if (!writable_ && !ended_)
        writable_ = loop_.watch(out(), Ready::write, [this] { write_now(); });
      return forget_written();
    }
  }
  writable_ = {};
  forget_written();
}

// A stream that never runs dry would keep all it ever sent.  Moving the rest only when it is
// the smaller half makes this cheap however much is queued.
void Channel::forget_written() {
  if (backlog() > written_) return;
  outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(written_));
  written_ = 0;
}

void Channel::flush(Deadline deadline) {
  while (backlog() > 0) {
    write_now();
    if (backlog() > 0 && !wait_for_any({{out(), false, true}}, deadline)) return;
  }
}

void Channel::on_readable() {
  std::array<std::uint8_t, kReadBytes> buffer;
  const auto moved = read_some(in_.get(), buffer);
  if (!moved) return end(moved.error().code() == Errc::closed ? end_of_stream() : moved.error());
  if (moved->again) return;
  if (moved->bytes == 0) return end(end_of_stream());
  answering_since_ = loop_.now();
  const auto taken = take(ByteView(buffer).first(moved->bytes));
  answering_since_.reset();
  if (!writable_) write_now();
  if (!taken) end(taken.error());
}

Error Channel::end_of_stream() const {
  if (proof_) return Error(Errc::refused, "the other side hung up during the proof of the key");
  if (reader_.between_frames()) return Error(Errc::closed, "the other side closed the connection");
  return Error(Errc::malformed, "the connection ended in the middle of a message");
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

}  // namespace corro
