#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "base/time.h"
#include "launcher/hosts/hosts.h"
#include "launcher/job/reach.h"
#include "launcher/machine/binding.h"
#include "launcher/machine/pinning.h"
#include "launcher/output/tag.h"
#include "launcher/plan/recipe.h"
#include "launcher/supervise/outcome.h"

namespace corro::launcher {

// Who reads what the launcher is given to read.
struct StdinTo {
  enum class Who { rank, all, none } who = Who::rank;
  int rank = 0;
  bool reaches(int worker) const { return who == Who::all || (who == Who::rank && rank == worker); }
  bool operator==(const StdinTo&) const = default;
};

// What workers find their peers, GPUs and cores by.
struct Placement {
  GpuPinning gpu_pinning = GpuPinning::indexed;
  BindTo bind_to = BindTo::none;
  bool report = false;  // tell where each worker runs
  PortRange ports;
  std::vector<std::string> interfaces;  // to use only; none: any
  bool operator==(const Placement&) const = default;
};

// All that the user asked for.
struct JobSpec {
  int np = 1;
  std::vector<HostSpec> hosts;  // with their slots
  std::vector<std::string> command;
  WorkerEnvironment environment;
  std::string cwd;
  unsigned umask = 022;
  std::string self;  // this program, which is also the guard
  Duration grace = std::chrono::seconds(5);
  Duration start_timeout = std::chrono::seconds(30);
  ExitCodePolicy exit_code_policy = ExitCodePolicy::first;
  OutputStyle output;
  StdinTo stdin_to;
  Placement placement;
  Reach reach;
  bool verbose = false;  // more is told of it
  TimePoint asked{};     // when the user did
};

// What happens meanwhile, for whoever wants to watch.
namespace news {
struct StoreListens {
  std::string address;
};
// Of a host that is not this machine.
struct HostReached {
  std::string host, address;
  Duration took;
  bool staged;  // this program was brought along
};
struct HostReady {
  std::string host;
  int agent_pid;
};
struct WorkerStarted {
  int rank;
  std::string host;
  int pid;
};
// How a host that is not this machine was reached, step by step.
struct Reaching {
  std::string host;
  Duration resolve, connect, login, start;
  Duration took() const { return resolve + connect + login + start; }
};
// When, since the driver began; none: it never came to that.
struct RoseUp {
  Duration before{};  // for the driver to begin, since the user asked
  std::optional<Duration> hosts_ready{}, workers_started{}, workers_met{};
  std::optional<Reaching> slowest{};
};
struct Warning {
  std::string text;
};
// For --report-bindings: cells, the titles first.
struct Placed {
  std::vector<std::vector<std::string>> rows;
};
struct WorkerEnded {
  int rank;
  std::string host;
  ExitStatus status;
};
}  // namespace news
using News =
    std::variant<news::StoreListens, news::HostReached, news::HostReady, news::WorkerStarted,
                 news::WorkerEnded, news::RoseUp, news::Warning, news::Placed>;
using Wording = std::function<std::string(const News&)>;  // whole lines

// Whether only those want to know it who want to know more.
bool is_detail(const News&);

// Runs a job from its first process to its last.  An error: it was not begun, and nothing was
// started.  SIGINT, SIGTERM and SIGHUP to this process meanwhile end the job.
Result<Outcome> run_job(const JobSpec&, const Wording&);

}  // namespace corro::launcher
