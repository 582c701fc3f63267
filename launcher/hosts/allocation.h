#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/hosts/hosts.h"

namespace corro::launcher {

// The hosts that a cluster's scheduler gave to this job.
struct Allocation {
  std::string from;  // "Slurm job 4711 (SLURM_JOB_NODELIST)"
  HostList list;
  bool operator==(const Allocation&) const = default;
};

using ReadVariable = std::function<std::optional<std::string>(const std::string& name)>;

// Looks for Slurm, LSF, PBS, SGE and the MPI operator's host file, in this order.  None: there is
// no scheduler.  An error: there is one, but what it says cannot be used.
Result<std::optional<Allocation>> find_allocation(const ReadVariable&, const ReadFile&);

}  // namespace corro::launcher
