#pragma once

#include <array>
#include <memory>
#include <optional>

#include "runtime/transport/endpoint.h"
#include "runtime/transport/outbox.h"
#include "runtime/transport/stream.h"

namespace corro::runtime {

// Messages on a stream of bytes: TCP, or the simulator's.  Bodies go from and to the caller's
// memory; only headers and the words of an abort are kept here.
class StreamEndpoint final : public Endpoint {
 public:
  StreamEndpoint(Peer self, Peer peer, std::unique_ptr<Stream>);

  const Peer& peer() const override { return peer_; }
  void send(const Header& header, ByteView body) override { outbox_.put(header, body); }
  bool sent() const override { return outbox_.empty(); }
  void expect(const Header&) override;
  bool received() const override { return !expected_; }
  Outcome<bool> progress() override;
  Outcome<std::size_t> take(MutByteView into) override;
  void abort(const Failure&) override;
  std::optional<Failure> last_words() override;
  Interest interest() const override;

 private:
  // Whether anything moved.  What goes wrong is left in ended_ and failure_.
  bool listen();
  bool push();
  std::size_t read(MutByteView into);

  void on_header();
  void on_words();
  void match();
  void finish_receiving();
  bool pass_over();
  void end(const Error* why);
  std::optional<Failure> trouble();

  Peer self_, peer_;
  std::unique_ptr<Stream> stream_;
  Outbox outbox_;

  std::array<std::uint8_t, kHeaderBytes> raw_;  // of the header that is coming in
  std::size_t raw_size_ = 0;
  std::optional<Header> arrived_;  // until its body is taken; it may wait to be expected
  std::optional<Header> expected_;
  std::size_t left_ = 0;  // of the body of `arrived_`, once that is what was expected
  Bytes words_;           // of the peer's abort
  std::size_t words_size_ = 0;

  std::optional<std::string> ended_;  // how the connection did
  std::optional<Failure> failure_;
};

}  // namespace corro::runtime
