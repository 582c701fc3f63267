#pragma once

#include <array>
#include <memory>
#include <optional>

#include "runtime/transport/endpoint.h"
#include "runtime/transport/outbox.h"
#include "runtime/transport/stream.h"

namespace corro::runtime {

// Messages on a stream of bytes: TCP, or the simulator's.  Bodies go from and to the caller's
// memory; what is small (headers, short bodies) is read ahead, so that a short message costs one
// system call.
class StreamEndpoint final : public Endpoint {
 public:
  StreamEndpoint(Peer self, Peer peer, std::unique_ptr<Stream>);

  const Peer& peer() const override { return peer_; }
  void send(const Header& header, std::string_view description, Body body) override {
    outbox_.put(header, description, body);
  }
  bool sent() const override { return outbox_.empty(); }
  void expect(const Expected&) override;
  bool received() const override { return !expected_; }
  std::optional<Early> early() const override;
  Outcome<bool> progress() override;
  Outcome<std::size_t> take(MutByteView into) override;
  void abort(const Failure&) override;
  std::optional<Failure> last_words() override;
  Interest interest() const override;

 private:
  static constexpr std::size_t kReadAhead = 8 * 1024;

  // Whether anything moved.  What goes wrong is left in ended_ and failure_.
  bool listen();
  bool push();
  std::size_t read(MutByteView into);
  std::size_t read_stream(MutByteView into);

  void on_header();
  void on_text();
  void match();
  void finish_receiving();
  bool discard();
  void end(const Error* why);
  std::optional<Failure> trouble();
  bool text_complete() const { return text_size_ == text_.size(); }

  Peer self_, peer_;
  std::unique_ptr<Stream> stream_;
  Outbox outbox_;

  Bytes ahead_;  // read from the stream and not yet used: [used_, filled_)
  std::size_t used_ = 0, filled_ = 0;

  std::array<std::uint8_t, kHeaderBytes> raw_;  // of the header that is coming in
  std::size_t raw_size_ = 0;
  std::optional<Header> arrived_;  // until its body is taken; it may wait to be expected
  Bytes text_;                     // its description, or the body of the peer's abort
  std::size_t text_size_ = 0;
  std::optional<Expected> expected_;
  std::size_t left_ = 0;  // of the body of `arrived_`, once that is what was expected

  std::optional<std::string> ended_;  // how the connection did
  std::optional<Failure> failure_;
};

}  // namespace corro::runtime
