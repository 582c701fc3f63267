#include "runtime/transport/stream.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

namespace corro::runtime {

namespace {

iovec to_iovec(ByteView bytes) {
  return {const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<Moved> SocketStream::write(ByteView head, ByteView body) {
  iovec pieces[] = {to_iovec(head), to_iovec(body)};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  ssize_t n;
  do n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  if (n >= 0) return Moved{static_cast<std::size_t>(n), false};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return Moved{0, true};
  return Error::from_errno("writing");
}

}  // namespace corro::runtime
