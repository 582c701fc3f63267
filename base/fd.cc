#include "base/fd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace corro {

namespace {

bool not_now(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

template <class Call>
Result<Moved> move_once(const char* doing, Call call) {
  ssize_t n;
  do n = call();
  while (n < 0 && errno == EINTR);
  if (n >= 0) return Moved{static_cast<std::size_t>(n), false};
  if (not_now(errno)) return Moved{0, true};
  const bool gone = errno == EPIPE || errno == ECONNRESET;
  Error error = Error::from_errno(doing);
  return gone ? Error(Errc::closed, error.text()) : std::move(error);
}

}  // namespace

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno("making a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

void widen(const Pipe& pipe, int bytes) {
  (void)::fcntl(pipe.write_end.get(), F_SETPIPE_SZ, bytes);
}

Result<Unit> set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return Error::from_errno("making a descriptor non-blocking");
  return Unit{};
}

Result<Moved> read_some(int fd, MutByteView into) {
  return move_once("reading", [&] { return ::read(fd, into.data(), into.size()); });
}

// A peer that is gone must be an error here and not SIGPIPE in somebody's training script, so
// sockets are written with MSG_NOSIGNAL; pipes are ours alone, in programs that ignore SIGPIPE.
Result<Moved> write_some(int fd, ByteView from) {
  return move_once("writing", [&] {
    const ssize_t n = ::send(fd, from.data(), from.size(), MSG_NOSIGNAL);
    return n < 0 && errno == ENOTSOCK ? ::write(fd, from.data(), from.size()) : n;
  });
}

}  // namespace corro
