#include "launcher/pipe/copy.h"

#include <unistd.h>

#include "base/codec.h"
#include "base/frame.h"
#include "launcher/agent/protocol.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kPiece = 128 << 10;
// With a far side that was told that we go.  An agent gives its workers five seconds by default.
constexpr auto kFarewell = 10s;
constexpr auto kLong = 1h;  // then it looks again

// Bytes that have been read here and not yet written there.
class Flow {
 public:
  bool empty() const { return written_ == ready_; }
  ByteView waiting() const { return ByteView(bytes_).subspan(written_, ready_ - written_); }

  void add(ByteView more) { append(bytes_, more); }

  // So many from the front may be written.
  Result<Unit> release(Shape shape) {
    if (shape == Shape::bytes) {
      ready_ = bytes_.size();
      return Unit{};
    }
    const auto whole = whole_frames(ByteView(bytes_).subspan(ready_));
    if (!whole) return whole.error();
    ready_ += *whole;
    return Unit{};
  }

  void took(std::size_t n) {
    written_ += n;
    if (!empty()) return;
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(written_));
    written_ = ready_ = 0;
  }

 private:
  Bytes bytes_;
  std::size_t ready_ = 0, written_ = 0;
};

class Copying {
 public:
  Copying(Wire& wire, Shape shape) : wire_(wire), shape_(shape) {}

  std::optional<Error> run(Bytes first) {
    up_.add(first);
    if (auto fits = up_.release(shape_); !fits) return fits.error();
    for (;;) {
      move_down();
      if (auto moved = move_up(); !moved) return moved.error();
      forward_asides();
      if (nobody_listens_ || (up_ended_ && up_.empty())) return std::nullopt;
      const auto waited = wait();
      if (farewell_ && farewell_->passed()) return std::nullopt;
      if (!waited && waited.error().code() != Errc::timed_out) return waited.error();
    }
  }

 private:
  void move_down() {
    while (!down_ended_) {
      if (down_.empty()) {
        const auto got = read_some(STDIN_FILENO, piece_);
        if (got && got->again) break;
        if (!got || got->bytes == 0) {
          say_farewell();
          break;
        }
        down_.add(MutByteView(piece_).first(got->bytes));
        (void)down_.release(Shape::bytes);
      }
      const auto put = wire_.write_some(down_.waiting());
      if (!put) {
        // They may have gone in good order, and their last words are still to be read.
        down_ended_ = true;
        break;
      }
      down_.took(put->bytes);
      if (put->again) break;
    }
  }

  void say_farewell() {
    wire_.end_writing();
    down_ended_ = true;
    farewell_ = Deadline::in(kFarewell);
  }

  Result<Unit> move_up() {
    for (;;) {
      if (up_.empty()) {
        const auto got = wire_.read_some(piece_);
        if (!got) return got.error();
        if (got->again) break;
        if (got->bytes == 0) {
          up_ended_ = true;
          break;
        }
        up_.add(MutByteView(piece_).first(got->bytes));
        if (auto fits = up_.release(shape_); !fits) return fits.error();
        if (up_.empty()) continue;
      }
      const auto put = write_some(STDOUT_FILENO, up_.waiting());
      if (!put) {
        nobody_listens_ = true;
        break;
      }
      up_.took(put->bytes);
      if (put->again) break;
    }
    return Unit{};
  }

  void forward_asides() {
    const std::string text = wire_.take_asides();
    if (!text.empty()) (void)!::write(STDERR_FILENO, text.data(), text.size());
  }

  Result<Unit> wait() {
    auto interests = wire_.interests(up_.empty() && !up_ended_, !down_.empty() && !down_ended_);
    if (down_.empty() && !down_ended_) interests.push_back({STDIN_FILENO, true, false});
    if (!up_.empty()) interests.push_back({STDOUT_FILENO, false, true});
    return wait_for_any(interests, farewell_.value_or(Deadline::in(kLong)));
  }

  Wire& wire_;
  Shape shape_;
  Bytes piece_ = Bytes(kPiece);
  Flow down_, up_;
  bool down_ended_ = false, up_ended_ = false, nobody_listens_ = false;
  std::optional<Deadline> farewell_;
};

}  // namespace

Result<std::size_t> whole_frames(ByteView bytes) {
  std::size_t at = 0;
  while (bytes.size() - at >= kFrameLengthBytes) {
    const std::size_t length = load_little<std::uint32_t>(bytes.data() + at);
    if (length > agent::kUpLimit + kFrameHeaderBytes - kFrameLengthBytes)
      return Error(Errc::malformed, "something else than an agent's frames came");
    if (bytes.size() - at - kFrameLengthBytes < length) break;
    at += kFrameLengthBytes + length;
  }
  return at;
}

std::optional<Error> copy_both_ways(Wire& wire, Bytes first, Shape shape) {
  return Copying(wire, shape).run(std::move(first));
}

}  // namespace corro::launcher
