#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/result.h"
#include "launcher/agent/protocol.h"
#include "launcher/job/job.h"
#include "launcher/plan/plan.h"

namespace corro::launcher {

// What one worker gets of its host.
struct Place {
  std::vector<Variable> gpu;
  Cpus cpus;
};

struct Placing {
  std::vector<Place> workers;                  // by rank
  std::vector<std::string> warnings;           // for the user, a line each
  std::vector<std::vector<std::string>> rows;  // for --report-bindings, the titles first
};

// Why the job must not start, and which host is to blame.
struct Unfit {
  std::string host, why;
};

// Pure.  Which GPU and which CPUs each worker gets, of what the hosts have.
Result<Placing, Unfit> place_workers(const JobSpec&, const Plan&,
                                     const std::map<std::string, agent::Facts>&);

// Pure.  As many workers as a host takes if nobody says how many: one for each device that it
// shows, else one.
int natural_slots(const JobSpec&, const std::string& host, const std::vector<Gpu>&);

// Pure.  How a host is to open doors for the others of this job.
agent::Opener opener_for(const HostSpec&, const Placement&, const Key&);

}  // namespace corro::launcher
