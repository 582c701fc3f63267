#include "runtime/transport/stream.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace corro::runtime {

SocketStream::SocketStream(Fd socket) : socket_(std::move(socket)), owner_(::getpid()) {}

// A forked child may still hold the socket: to close our descriptor alone would leave the peer
// waiting for a connection that no process serves.  The child itself closes only its descriptor.
SocketStream::~SocketStream() {
  if (socket_ && owner_ == ::getpid()) ::shutdown(socket_.get(), SHUT_WR);
}

Result<Moved> SocketStream::write(std::span<const ByteView> pieces) {
  std::array<iovec, kPiecesPerWrite> vectors;
  const std::size_t n_vectors = std::min(pieces.size(), vectors.size());
  for (std::size_t i = 0; i < n_vectors; ++i)
    vectors[i] = {const_cast<std::uint8_t*>(pieces[i].data()), pieces[i].size()};
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = n_vectors;
  ssize_t n;
  do n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  if (n >= 0) return Moved{static_cast<std::size_t>(n), false};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return Moved{0, true};
  return Error::from_errno("writing");
}

}  // namespace corro::runtime
