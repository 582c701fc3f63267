#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/socket.h"
#include "base/time.h"

namespace corro::launcher {

// A command on a host, as seen from here: bytes both ways, and what it says besides.  Its calls do
// not block; `await` and those below do, with a deadline.  Belongs to one thread.
class Wire {
 public:
  virtual ~Wire() = default;

  virtual Result<Moved> read_some(MutByteView) = 0;
  virtual Result<Moved> write_some(ByteView) = 0;
  virtual void end_writing() = 0;

  // What to wait for until one of these can go on.
  virtual std::vector<Interest> interests(bool reading, bool writing) const = 0;

  // What the command wrote to its stderr since this was asked last, or the beginning of it.
  virtual std::string take_asides() = 0;

  // When its stream has ended: its exit code, as a shell has it.
  virtual std::optional<int> exit_code(Deadline) = 0;
};

// Of what is written to stderr while nobody takes it.
inline constexpr std::size_t kAsidesKept = 64 << 10;

// Waits for any of these; `closed` when nobody holds the other end of our stdin any more, because
// then nobody wants what is waited for.
Result<Unit> await(std::vector<Interest>, Deadline);

// What comes next; empty at the end of the stream.
Result<Bytes> read_from(Wire&, Deadline);

// `patience`: how long it may stand still.
Result<Unit> write_to(Wire&, ByteView, Duration patience);

}  // namespace corro::launcher
