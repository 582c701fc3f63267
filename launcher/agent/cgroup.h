#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace corro::launcher::agent {

// A cgroup as a folder, of the hierarchy that accounts for memory.
struct Cgroup {
  int version = 2;
  std::string folder;  // of this cgroup
  std::string top;     // the highest that can be seen from here: a parent of it, or itself
  bool operator==(const Cgroup&) const = default;
};

// Where a process is, from the texts of /proc/self/cgroup and /proc/self/mountinfo.  Version 1 if
// the memory controller is there, as on machines that have both.
Result<Cgroup> locate_cgroup(std::string_view cgroup, std::string_view mountinfo);
Result<Cgroup> own_cgroup();

// What a cgroup knows of memory.  What cannot be read or is unlimited is not there.
struct MemoryCounters {
  std::optional<std::uint64_t> oom_kills;  // of processes in this cgroup
  std::optional<std::uint64_t> failures;   // version 1: how often the limit was met
  std::optional<std::uint64_t> limit_bytes, peak_bytes;
  bool operator==(const MemoryCounters&) const = default;
};
MemoryCounters read_counters(const Cgroup&);

// The parsers of single files.
std::optional<std::uint64_t> parse_oom_kills(
    std::string_view events);                                      // memory.events, .oom_control
std::optional<std::uint64_t> parse_bytes(std::string_view limit);  // "max" and the like are none

// A cgroup for one worker, below the agent's own, that counts its memory, or at least lets all of
// it be killed at once.  That there is none is normal (most users may not make one); everything
// that is promised holds without.
//
// Removed with this object, if all that was in it is gone by then; else by the next agent here.
// Belongs to the agent's thread.
class WorkerCgroup {
 public:
  // The error is for those who want to know why not.
  static Result<WorkerCgroup> create(const Cgroup& home, std::uint32_t worker);

  WorkerCgroup(WorkerCgroup&& other) noexcept;
  WorkerCgroup& operator=(WorkerCgroup&&) noexcept;
  ~WorkerCgroup();

  const Cgroup& place() const { return place_; }

  // Whether the process is in it from now on, with all that it starts and those of its descendants
  // that it has not given up to others (daemons).
  bool take_in(pid_t) const;

  // Kills all that is in it at once, however it has forked.  Whether that can be had: version 2,
  // Linux 5.14.
  bool kill() const;

  // Whether it is gone; false while a process is in it.
  bool remove();

 private:
  explicit WorkerCgroup(Cgroup place) : place_(std::move(place)) {}
  bool write(const char* file, std::string_view text) const;
  bool take_in_alone(pid_t, const std::vector<pid_t>& threads) const;

  Cgroup place_;  // an empty folder: none, or removed
};

// "corro-AGENT-WORKER"
std::string cgroup_name(pid_t agent, std::uint32_t worker);
// The agent that has made a cgroup of this name; none for the name of another.
std::optional<pid_t> agent_of_cgroup(std::string_view name);

// Removes what agents that were killed have left below here.  Returns how many.
int remove_leftovers(const Cgroup& home);

}  // namespace corro::launcher::agent
