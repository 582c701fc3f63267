#pragma once

#include <utility>

#include "base/bytes.h"
#include "base/result.h"

namespace corro {

// Owns one file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// Both ends are close-on-exec.
struct Pipe {
  Fd read_end, write_end;
};
Result<Pipe> make_pipe();

// Lets a pipe hold more than 64 KiB, if the system does, so that two ends that move much wake each
// other less often.
void widen(const Pipe&, int bytes);

Result<Unit> set_nonblocking(int fd);

// One read or write on a descriptor that does not block.  Zero bytes and `again` mean "not now";
// zero bytes and not `again` from a read mean the end of the stream.
struct Moved {
  std::size_t bytes = 0;
  bool again = false;
};
Result<Moved> read_some(int fd, MutByteView into);
Result<Moved> write_some(int fd, ByteView from);

}  // namespace corro
