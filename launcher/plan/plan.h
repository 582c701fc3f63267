#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/hosts/hosts.h"

namespace corro::launcher {

// One worker's place in the job.  `cross` counts the hosts that have a worker at the same local
// rank: on a:2,b:1 rank 1 (a's second worker) is alone in its cross group.
struct Slot {
  std::string host;
  int rank = 0, local_rank = 0, cross_rank = 0;
  int local_size = 1, cross_size = 1;
  int index = 0;  // which of the host's slots: its local rank, unless some were chosen
  bool operator==(const Slot&) const = default;
};

// Who runs where, in one generation of the job.
struct Plan {
  std::uint64_t generation = 0;
  std::vector<Slot> slots;  // by rank

  int size() const { return static_cast<int>(slots.size()); }
  std::vector<std::string> hosts() const;  // those with workers, in order
  bool operator==(const Plan&) const = default;
};

// Hosts in the given order, each filled before the next.  Every host's slots are known.
Result<Plan> make_plan(std::span<const HostSpec> hosts, int np, std::uint64_t generation);

// What to do to get from one plan to the next.  A worker is kept if its rank stays on its host, at
// its local rank and in its slot: its process was told all three, and need not be touched.
struct Diff {
  std::vector<int> start, keep, stop;  // ranks
  bool operator==(const Diff&) const = default;
};
Diff diff(const Plan& now, const Plan& next);

}  // namespace corro::launcher
