#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/codec.h"
#include "base/fd.h"
#include "base/frame.h"
#include "base/time.h"

namespace corro::launcher::agent {

// What can be seen of a worker from outside.  What cannot is empty or zero; that is never an error.
struct Evidence {
  // Who was examined: the worker, or the one that it has started and does nothing but wait for (a
  // shell and its python).
  std::int32_t pid = 0;
  std::string command;        // as the kernel knows it, 15 bytes at the most
  char state = 0;             // R, S, D, T, t, Z; 0: it is gone
  std::uint64_t started = 0;  // in ticks since the machine began: no other of this number has it
  std::uint32_t threads = 0;
  std::uint32_t descendants = 0;  // of the worker
  std::uint64_t rss_bytes = 0, peak_rss_bytes = 0;
  std::uint64_t cpu_ms = 0;
  std::string waits_in;  // the system call of its main thread, "futex"; or a kernel function
  std::vector<std::string> frames;  // of its main thread, innermost first
  bool python = false;
  bool has_python_dump = false;  // it writes its Python stacks to stderr on python_dump_signal()

  // "running", "sleeping", "waiting for the disk", …
  std::string_view state_text() const;

  CORRO_FIELDS(pid, command, state, started, threads, descendants, rss_bytes, peak_rss_bytes,
               cpu_ms, waits_in, frames, python, has_python_dump)
  bool operator==(const Evidence&) const = default;
};

inline constexpr std::size_t kFramesMost = 16;
// Of one Evidence, encoded: what a pipe takes in one piece.
inline constexpr std::size_t kEvidenceBytes = 4000;

// On this signal a worker that imports corro writes the stacks of its Python threads to its stderr,
// in the middle of whatever it does.  SIGUSR1 and SIGUSR2 are the scripts' own, and the first
// real-time signals are taken by libraries.  The default action is to end the process, so it is for
// those only who have_python_dump.  DUMP_SIGNAL in python/corro/__init__.py is the same.
inline int python_dump_signal() {
  return SIGRTMIN + 12;
}

// An examination of many workers, under way in a process of its own, which is killed when it takes
// too long.  Reading a stack means to trace the worker and to trust a library with what it finds
// there, and even /proc can block: a hang or a crash shall not be the agent's.
//
//   agent ─fork→ examiner ─fork→ one helper for each worker, a few at a time
//
// All of them end with the one above, and a tracer that ends lets its tracee go on.
//
// Belongs to one thread, which goes on living while it runs.
class Examination {
 public:
  Examination(std::vector<pid_t> workers, Deadline);
  Examination(Examination&&) noexcept = default;
  ~Examination();

  // To be watched for reading; -1: it is over.
  int fd() const { return results_.get(); }

  // Takes what has come.  Whether it is over: all is there, or the time is.
  bool advance();

  // What has come by now, in the order of the workers.  Ends it.
  std::vector<Evidence> take();

 private:
  void end();

  Deadline deadline_;
  std::vector<Evidence> found_;
  Fd results_, examiner_;  // a pipe and a pidfd
  pid_t pid_ = 0;
  FrameReader reader_{kEvidenceBytes};
};

// The same, waiting for the end.
std::vector<Evidence> examine_all(std::span<const pid_t> workers, Deadline);
Evidence examine(pid_t worker, Deadline);

// Asks for its Python stacks the one who was examined, if it has_python_dump, and nobody who may
// have its number by now.
void ask_for_python_stacks(const Evidence&);

// The parsers.

// Adds what /proc/PID/stat and /proc/PID/status say.
void parse_stat(std::string_view stat, Evidence&);
void parse_status(std::string_view status, Evidence&);
// "61 0xffff…" → "wait4"; empty for "running" and for calls that have no name here.
std::string parse_syscall(std::string_view syscall);
bool maps_have_python(std::string_view maps);

}  // namespace corro::launcher::agent
