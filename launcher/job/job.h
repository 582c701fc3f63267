#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "launcher/hosts/hosts.h"
#include "launcher/supervise/outcome.h"

namespace kolo {

// All that the user asked for.
struct JobSpec {
  int np = 1;
  std::vector<HostSpec> hosts;
  std::vector<std::string> command;
  std::vector<std::string> env;  // the launcher's own, "NAME=value"
  std::string cwd;
  std::string self;  // this program, which is also the guard
  Duration grace = std::chrono::seconds(5);
};

// What happens meanwhile, for whoever wants to watch.
namespace news {
struct StoreListens {
  std::string address;
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
struct WorkerEnded {
  int rank;
  std::string host;
  ExitStatus status;
};
}  // namespace news
using News =
    std::variant<news::StoreListens, news::HostReady, news::WorkerStarted, news::WorkerEnded>;
using Tell = std::function<void(const News&)>;  // called on some thread, once at a time

// Runs a job from its first process to its last.  An error: it was not begun, and nothing was
// started.  SIGINT, SIGTERM and SIGHUP to this process meanwhile end the job.
Result<Outcome> run_job(const JobSpec&, const Tell&);

}  // namespace kolo
