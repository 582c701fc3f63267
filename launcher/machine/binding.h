#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/machine/topology.h"

// Which worker runs on which CPUs.  Pure.
namespace corro::launcher {

// core  each worker has cores of its own, with all their hardware threads: as many as everybody
//       else, near its GPU; what cannot be divided stays free
// numa  each worker has the CPUs of a NUMA node, which others may share: that of its GPU, else
// nodes
//       in turn, neighbours together
// none  wherever the kernel likes
enum class BindTo { core, numa, none };

struct Bindings {
  std::vector<Cpus> workers;       // empty: not bound
  std::vector<std::string> notes;  // what the user should know
  bool operator==(const Bindings&) const = default;
};

// For the workers of one host, by local rank, each with the NUMA node of its GPU (-1: none).  All
// CPUs are among the allowed ones.
Result<Bindings> bind_workers(std::string_view host, const Topology&, BindTo,
                              const std::vector<int>& numa_of_worker);

// The NUMA nodes on which these CPUs lie.
std::vector<int> numa_nodes_of(const Topology&, const Cpus&);

// For --report-bindings.
struct BindingReport {
  int rank = 0;
  std::string host;
  Cpus cpus;  // empty: not bound
  std::vector<int> numa_nodes;
  std::string gpu;  // WorkerGpu::device
};

// Cells, the titles first: rank, host, cpus ("0-3,8"), numa, gpu.  "-" is none.
std::vector<std::vector<std::string>> binding_rows(const std::vector<BindingReport>&);

}  // namespace corro::launcher
