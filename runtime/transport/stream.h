#pragma once

#include "base/fd.h"

namespace corro::runtime {

// Bytes in order, both ways, without waiting: what a StreamEndpoint is made on.
class Stream {
 public:
  virtual ~Stream() = default;

  virtual Result<Moved> read(MutByteView into) = 0;

  // Two pieces, as if they lay side by side: a header and its body go in one packet.
  virtual Result<Moved> write(ByteView head, ByteView body) = 0;

  virtual int fd() const = 0;  // to wait on; -1 where there is none
};

class SocketStream final : public Stream {
 public:
  explicit SocketStream(Fd socket) : socket_(std::move(socket)) {}

  Result<Moved> read(MutByteView into) override { return read_some(socket_.get(), into); }
  Result<Moved> write(ByteView head, ByteView body) override;
  int fd() const override { return socket_.get(); }

 private:
  Fd socket_;
};

}  // namespace corro::runtime
