#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/crypto.h"
#include "launcher/agent/protocol.h"
#include "launcher/job/job.h"
#include "launcher/job/placing.h"
#include "launcher/network/door.h"
#include "launcher/plan/plan.h"
#include "launcher/plan/recipe.h"

namespace corro::launcher {

// The addresses at which the hosts of a job and the launcher are reached.
struct Routes {
  std::map<std::string, Door> hosts;
  Door launcher;
};

using FactsByHost = std::map<std::string, agent::Facts>;

// What the start of a job has found out and decided: where all meet, and what each worker is
// started with.  Complete from the beginning; nothing is filled in later.
//
// Pure.  The job and the plan outlive it.
class Arrangement {
 public:
  Arrangement(const JobSpec&, const Plan&, const Key&, const Address& store, const Routes&,
              const FactsByHost&, std::vector<Place> workers);
  Arrangement(const Arrangement&) = delete;

  agent::Start start_of(int rank) const;

 private:
  const JobSpec& spec_;
  const Plan& plan_;
  const std::vector<Place> workers_;         // by rank
  std::map<std::string, HostShare> shares_;  // by host; GPUs are a worker's own
  const Setting setting_;
  const Recipes recipes_;
};

}  // namespace corro::launcher
