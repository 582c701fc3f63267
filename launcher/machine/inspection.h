#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/time.h"
#include "launcher/machine/gpus.h"

namespace corro::launcher {

// What the kernel lets a process have.
struct Limit {
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t soft = kNone, hard = kNone;

  CORRO_FIELDS(soft, hard)
  bool operator==(const Limit&) const = default;
};

// A directory that a job needs, as this user finds it.
struct Folder {
  std::string path;
  bool exists = false, can_enter = false, can_write = false;
  std::uint64_t free_bytes = 0, total_bytes = 0;
  std::string why_not;  // it cannot be entered or written to

  CORRO_FIELDS(path, exists, can_enter, can_write, free_bytes, total_bytes, why_not)
  bool operator==(const Folder&) const = default;
};

// An address of a network interface.
struct Nic {
  std::string name, ip;
  bool up = false, loopback = false;
  std::int32_t speed_mbps = 0;  // 0: not known

  CORRO_FIELDS(name, ip, up, loopback, speed_mbps)
  bool operator==(const Nic&) const = default;
};

// Something installed, and where it was seen.
struct Installed {
  std::string name, version, where;

  CORRO_FIELDS(name, version, where)
  bool operator==(const Installed&) const = default;
};

struct Python {
  std::string path, version;        // no path: there is none
  std::vector<Installed> packages;  // frameworks, and the NVIDIA libraries that come by pip

  CORRO_FIELDS(path, version, packages)
  bool operator==(const Python&) const = default;
};

// The command's first word, as it would be started.
struct FoundProgram {
  std::string path;  // empty: it is not there
  bool can_run = false;
  std::string why_not;
  std::string interpreter;  // of a script, as after #!

  CORRO_FIELDS(path, can_run, why_not, interpreter)
  bool operator==(const FoundProgram&) const = default;
};

// What an interpreter is told to run: "python3 train.py".
struct FoundScript {
  std::string path;
  bool exists = false, can_read = false;
  std::string why_not;

  CORRO_FIELDS(path, exists, can_read, why_not)
  bool operator==(const FoundScript&) const = default;
};

// What could not be found out, and why.
struct Trouble {
  enum class About { paths, scratch, libraries, gpus, python, all } about = About::all;
  std::string text;

  CORRO_FIELDS(about, text)
  bool operator==(const Trouble&) const = default;
};
constexpr Trouble::About last_of(Trouble::About) {
  return Trouble::About::all;
}

// One host, as a worker there would find it.
struct Inspection {
  std::string hostname, kernel, architecture;
  // Equal for two who share a kernel and its network: they are one host by two names.
  std::string identity;
  std::uint32_t cores = 1;  // that workers may run on
  std::string cpu;
  std::uint64_t memory_bytes = 0, available_bytes = 0;
  std::vector<Gpu> gpus;
  std::string driver;                // NVIDIA's, as the kernel has loaded it; empty: there is none
  std::vector<Installed> libraries;  // "CUDA", "NCCL", and "libcuda" of the driver
  Limit nofile, nproc, memlock;
  bool is_root = false;  // to whom nproc does not apply
  std::optional<Folder> cwd;
  std::vector<Folder> scratch;  // /tmp, /dev/shm and the home of whom the agent runs as
  std::optional<Python> python;
  std::optional<FoundProgram> program;  // none: nobody asked, or it could not be found out
  std::optional<FoundScript> script;    // none: the same, or the program does not read one
  std::vector<Nic> nics;
  std::vector<Trouble> troubles;

  CORRO_FIELDS(hostname, kernel, architecture, identity, cores, cpu, memory_bytes, available_bytes,
               gpus, driver, libraries, nofile, nproc, memlock, is_root, cwd, scratch, python,
               program, script, nics, troubles)
  bool operator==(const Inspection&) const = default;
};

struct InspectionRequest {
  std::string cwd;                // empty: nobody cares
  std::vector<std::string> argv;  // empty: the same
  std::vector<std::string> env;   // of a worker
  std::string root;               // in front of system paths, for a test
};

// Looks around.  Whatever may hang is asked by children; what has not answered at the deadline is
// among the troubles.
Inspection inspect(const InspectionRequest&, Deadline);

// What Inspection::identity of this process is.
std::string machine_identity(const std::string& root = "");

// Where this process may run.
std::uint32_t usable_cores();

}  // namespace corro::launcher
