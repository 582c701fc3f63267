#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/codec.h"
#include "base/fd.h"
#include "launcher/agent/cgroup.h"

namespace corro::launcher::agent {

// Whether the kernel killed a worker, or what it had started, because memory was short.
struct OomVerdict {
  enum class By : std::uint8_t {
    nobody,      // nothing says so
    own_cgroup,  // the worker's cgroup counts it
    kernel_log,  // the kernel's log names the process
    same_time,   // it happened in the agent's cgroup while the worker died of SIGKILL
  };
  friend constexpr By last_of(By) { return By::same_time; }

  By by = By::nobody;
  std::optional<std::uint64_t> limit_bytes;  // of the cgroup, if that was it and not the machine
  std::optional<std::uint64_t> peak_bytes;   // of the worker: of its cgroup, or of the process
  std::int32_t pid = 0;                      // who was killed, if the log says so
  std::string name;

  explicit operator bool() const { return by != By::nobody; }
  bool certain() const { return by == By::own_cgroup || by == By::kernel_log; }
  // "out of memory; the limit of its cgroup is 20 MiB"; empty if it is none.
  std::string text() const;

  CORRO_FIELDS(by, limit_bytes, peak_bytes, pid, name)
  bool operator==(const OomVerdict&) const = default;
};

// A line of the kernel's log that says whom it killed.
struct OomKill {
  pid_t pid = 0;
  std::string name;
  std::uint64_t rss_bytes = 0;
  bool in_cgroup = false;  // for a limit, and not for want of memory on the machine
  bool operator==(const OomKill&) const = default;
};
std::optional<OomKill> parse_oom_kill(std::string_view line);

// What the counters of a worker's own cgroup, which begin with zero, say.
OomVerdict judge_own(const MemoryCounters&);
// And what those of a cgroup that it shares with others say, from before it started and now.
OomVerdict judge_shared(const MemoryCounters& before, const MemoryCounters& now);

// Remembers how things were when no worker had been started.  Belongs to the agent's thread.
class OomWatch {
 public:
  explicit OomWatch(std::optional<Cgroup> home);

  // About a worker that SIGKILL ended.  Reads a few files; does not wait.
  OomVerdict verdict(pid_t worker, const WorkerCgroup*);

 private:
  void read_log();

  std::optional<Cgroup> home_;
  MemoryCounters before_;
  Fd log_;  // at what was not read yet; none if we may not read it
  std::deque<OomKill> kills_;
};

}  // namespace corro::launcher::agent
