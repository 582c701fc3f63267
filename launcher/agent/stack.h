#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace corro::launcher::agent {

// Reads the native stack of another process's main thread, by elfutils' libdw if this machine has
// it.  The thread stands still for some milliseconds, and the caller is its tracer for that time.
// Most system calls go on as if nothing had been; a few, epoll_wait(2) among them, return EINTR.
//
// Waits as long as it takes and trusts a library with whatever the other process has in memory, so
// it is for a process that may be killed or crash at any time.  When such a process ends, the
// kernel lets the thread go on.
class StackReader {
 public:
  static StackReader open();

  // Innermost first, at most so many, each "function (library)".  None without libdw or permission.
  std::vector<std::string> frames(pid_t, std::size_t most) const;

 private:
  struct Libdw;
  const Libdw* libdw_ = nullptr;  // for as long as the process lives
};

// What a frame is called: names of C++ are made readable, and shortened.
std::string frame_text(const char* function, std::string_view library_path);

// Whether a frame is the interpreter's own, which is the same whatever the program does.
bool is_interpreter(std::string_view frame);

}  // namespace corro::launcher::agent
