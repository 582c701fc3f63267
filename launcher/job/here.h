#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "launcher/job/job.h"
#include "launcher/plan/plan.h"

namespace corro::launcher {

// The hosts of a plan that are this machine.
std::set<std::string> hosts_here(const Plan&);

// Whether this machine has the network interfaces that the user names, as far as workers run here.
Result<Unit> check_interfaces_here(const Placement&, const Plan&);

}  // namespace corro::launcher
