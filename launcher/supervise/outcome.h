#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_status.h"
#include "base/time.h"

namespace corro::launcher {

// What went wrong first.  Everything after it may be its consequence.
struct Failure {
  enum class Kind { worker, not_started, host, unfit };

  Kind kind = Kind::worker;
  std::string host;
  std::optional<int> rank;  // of the worker, or of the first one on the host
  std::string cause;        // "exited with code 3"
  int exit_code = 1;
  Duration after{};  // since the job began
  bool operator==(const Failure&) const = default;
};

// What a worker was seen doing when the job failed, or had said when it ended itself.
struct Doing {
  std::string operation;  // of the runtime's: "allreduce(sum of 16 f64), call 12"; may be empty
  bool under_way = false;
  std::string state;                // "sleeping in futex"; empty: it was not seen
  std::vector<std::string> frames;  // of its stack, innermost first
  std::uint64_t rss_bytes = 0;
  // The file, below --output-filename, that has what a Python wrote when it was asked for its
  // stacks.
  std::string python_stacks_in{};
  bool operator==(const Doing&) const = default;
};

// The end of one worker.  None: it was never started, or was lost with its host.
struct WorkerEnd {
  std::string host;
  std::optional<ExitStatus> status;
  std::optional<int> told_to_stop;  // the last signal that we sent before it ended
  std::optional<Doing> doing{};
  Usage used{};  // if there is a status
  bool operator==(const WorkerEnd&) const = default;
};

// A host that the launcher did not get to, and what to do about it.
struct Unreachable {
  std::string host, why, fix;
  int exit_code = 1;
  bool operator==(const Unreachable&) const = default;
};

struct Outcome {
  std::optional<Failure> failure;
  std::vector<Unreachable> unreachable;  // if that was the failure: all that are known
  std::optional<int> interrupted_by;     // a signal to the launcher
  std::vector<WorkerEnd> workers;        // by rank
  Duration took{};
  std::uint64_t not_shown = 0;  // bytes of output that a terminal did not take
  bool inside_line = false;     // where we speak, a worker's last words had no newline
};

// Our own codes; a worker's is passed on as it is.
inline constexpr int kExitName = 110;       // nobody knows the host's name
inline constexpr int kExitUnreached = 111;  // no connection to it
inline constexpr int kExitHostKey = 112;    // it does not prove who it is
inline constexpr int kExitLogin = 113;      // it does not let us in
inline constexpr int kExitMachine = 114;    // this program cannot be brought there, or not run
inline constexpr int kExitNetwork = 115;    // hosts do not reach each other
inline constexpr int kExitHostLost = 121;
inline constexpr int kExitRendezvous = 122;  // there is no place for the workers to meet
inline constexpr int kExitUnfit = 123;
inline constexpr int kExitTimeout = 124;
inline constexpr int kExitInternal = 125;
inline constexpr int kExitCannotRun = 126;
inline constexpr int kExitNoProgram = 127;

// Whose exit code becomes the launcher's: that of the first who failed, the greatest of all, or
// rank 0's.
enum class ExitCodePolicy { first, max, rank0 };

// Pure.  128+n for signal n, to a worker or to the launcher.  A worker that was told to stop did
// not choose its code, so the first failure's stands in for it.  No policy makes success of a job
// that failed.
int exit_code(const Outcome&, ExitCodePolicy);

}  // namespace corro::launcher
