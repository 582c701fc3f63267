#pragma once

#include <span>

#include "base/fd.h"

namespace corro::runtime {

// Bytes in order, both ways, without waiting: what a StreamEndpoint is made on.
class Stream {
 public:
  virtual ~Stream() = default;

  virtual Result<Moved> read(MutByteView into) = 0;

  // Several pieces, as if they were contiguous: a header and its body go in one packet.
  virtual Result<Moved> write(std::span<const ByteView> pieces) = 0;

  virtual int fd() const = 0;  // to wait on; -1 where there is none
};

class SocketStream final : public Stream {
 public:
  explicit SocketStream(Fd socket);
  ~SocketStream() override;

  Result<Moved> read(MutByteView into) override { return read_some(socket_.get(), into); }
  Result<Moved> write(std::span<const ByteView> pieces) override;
  int fd() const override { return socket_.get(); }

 private:
  Fd socket_;
  int owner_;  // pid
};

// Pieces that one write takes at most.
inline constexpr std::size_t kPiecesPerWrite = 32;

}  // namespace corro::runtime
