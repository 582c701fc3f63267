#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/result.h"

namespace corro::launcher {

// CPUs as the kernel counts them (hardware threads), in ascending order.
using Cpus = std::vector<std::int32_t>;

struct Core {
  Cpus cpus;
  std::int32_t numa_node = 0;

  CORRO_FIELDS(cpus, numa_node)
  bool operator==(const Core&) const = default;
};

struct Topology {
  std::vector<Core> cores;
  Cpus allowed;  // where this process may run

  CORRO_FIELDS(cores, allowed)
  bool operator==(const Topology&) const = default;
};

// Through hwloc, which is opened by that name and stays loaded.  HWLOC_SYNTHETIC and HWLOC_XMLFILE
// describe another machine, as hwloc has it, all of whose CPUs are then allowed.
Result<Topology> read_topology(const std::string& library = "libhwloc.so.15");

}  // namespace corro::launcher
