#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_status.h"
#include "base/fd.h"
#include "base/result.h"

namespace corro {

// What to start, completely: nothing is inherited but what is named here.
struct SpawnRequest {
  std::vector<std::string> argv;
  std::vector<std::string> env;     // "NAME=value"
  std::string cwd;                  // absolute; empty: the caller's
  int in = -1, out = -1, err = -1;  // become 0, 1 and 2; -1 keeps the caller's
  bool new_session = false;         // else a process group of its own
  int death_signal = 0;             // sent to it when the calling thread ends
  std::optional<mode_t> umask;      // none keeps the caller's
  std::vector<int> cpus;            // where it may run, ascending; empty: where the caller may
  int extra = -1;                   // becomes kExtraFd, if there is room for so high a number
  bool may_be_examined = false;     // by any process that descends from this one
};

// From now on this process may have as many descriptors as the system lets it.  What it starts has
// the limit that was set before: programs that use select(2) cannot bear more.
void want_many_descriptors();

// RLIMIT_NOFILE of what this process starts.
rlimit descriptors_for_children();

// High, so that it is not in the way of scripts, which use 3 to 9 for themselves.
inline constexpr int kExtraFd = 96;
inline constexpr std::size_t kGiven = 4;  // 0, 1, 2 and the extra one

// What this process was started with, as "NAME=value".
std::vector<std::string> own_environment();

// The program that a shell would run for this name: in PATH of that environment, or relative to
// that directory if the name has a slash.
Result<std::string> find_program(const std::string& name, const std::vector<std::string>& env,
                                 const std::string& cwd);

// Starts processes, and looks up only once what is the same for many of them: which signals are
// not as by default in this process, when it is made, and where the program is that was started
// last.  One that is made early, when low descriptors are free, starts them quicker.
//
// Belongs to one thread; made when the process has set its signals.
class Spawner {
 public:
  Spawner();

  // Returns when the program runs, or why it does not: `not_found` and `unsupported` (it cannot be
  // executed) are the program's fault.  Signals have their default actions there, and no descriptor
  // but 0, 1, 2 and the extra one is open.  That it cannot have the extra descriptor or be examined
  // is no failure.
  Result<pid_t> spawn(const SpawnRequest&);

 private:
  Result<std::string> program_for(const SpawnRequest&);
  Result<std::array<int, kGiven>> put_in_place(const SpawnRequest&, const std::string& program);
  void empty_places();

  // Where a child finds what it is given.  All with higher numbers stays behind, and is neither
  // copied nor closed; there is nothing in them between one start and the next.
  std::array<Fd, kGiven> places_;
  Fd nothing_;
  int highest_ = 2;
  int no_places_ = 0;  // why there are none: errno

  std::vector<int> signals_;
  struct Found {
    std::string name, path_variable, cwd, program;
  };
  std::optional<Found> last_;
};

// For whoever starts one.
inline Result<pid_t> spawn(const SpawnRequest& request) {
  return Spawner().spawn(request);
}

struct Ended {
  pid_t pid = 0;
  ExitStatus status;
  Usage used;
};

// Reaps one child that has ended, any or this one.  Does not wait.
std::optional<Ended> reap(std::optional<pid_t> which = std::nullopt);

// The processes whose parent is this one.
std::vector<pid_t> children();

}  // namespace corro
