#pragma once

#include <functional>
#include <optional>
#include <variant>

#include "base/assert.h"
#include "base/codec.h"
#include "base/fd.h"
#include "base/frame.h"
#include "base/loop.h"
#include "base/proof.h"

namespace corro {

// Frames both ways over a pair of descriptors or one socket, on the loop.  If a proof is given,
// it comes first: until it is done, nothing that arrives is taken for a frame.
//
// Ends once: `on_end` is called with the reason (`closed` for an end of stream between two
// frames), and then nothing more.  Its owner destroys it later, from the loop, never inside a
// callback.
class Channel {
 public:
  struct Events {
    std::function<Result<Unit>(const Frame&)> on_frame;  // an error ends the channel
    std::function<void(const Error&)> on_end;
    std::function<void()> on_proved;  // may be empty
  };

  // `out` may be empty: then `in` is a socket and serves both ways.
  Channel(Loop&, Fd in, Fd out, std::size_t body_limit, std::optional<Proof>, Events);

  // Queued; written as the other side takes it.  Frames are numbered from 1; returns the number.
  // With a proof: not before it is done.
  template <class... M>
  std::uint64_t send(const std::variant<M...>& message) {
    CORRO_ASSERT(!proof_);
    queue(encode_frame(message, ++last_sent_));
    return last_sent_;
  }

  std::size_t backlog() const { return outgoing_.size() - written_; }

  // Writes what is queued, waiting for the other side until the deadline.  What is left then
  // stays queued.
  void flush(Deadline);

 private:
  void queue(Bytes);
  void on_readable();
  void write_now();
  void forget_written();
  void end(Error);
  Error end_of_stream() const;
  Result<Unit> take(ByteView);
  int out() const { return out_ ? out_.get() : in_.get(); }

  Loop& loop_;
  Fd in_, out_;
  FrameReader reader_;
  std::optional<Proof> proof_;
  Events events_;
  Loop::Watch readable_, writable_;
  Bytes outgoing_;
  std::size_t written_ = 0;
  std::uint64_t last_sent_ = 0;
  bool ended_ = false;
  // Set while what arrived together is taken.  What is said in answer goes out together too, so
  // that the other side is not woken for each word: not much of it, and not for long after what it
  // answers was taken.
  std::optional<TimePoint> answering_since_;
};

}  // namespace corro
