#include "runtime/backend/native/topology.h"

#include <algorithm>
#include <map>

#include "base/assert.h"

namespace corro::runtime {

Topology Topology::by(std::span<const int> same, int self) {
  Topology topology;
  topology.self = self;
  std::map<int, std::size_t> seen;
  for (std::size_t i = 0; i < same.size(); ++i) {
    const auto [machine, is_new] = seen.try_emplace(same[i], topology.machines.size());
    if (is_new) topology.machines.emplace_back();
    topology.machines[machine->second].push_back(static_cast<int>(i));
  }
  return topology;
}

int Topology::size() const {
  std::size_t n = 0;
  for (const auto& members : machines) n += members.size();
  return static_cast<int>(n);
}

int Topology::machine_of(int member) const {
  for (std::size_t m = 0; m < machines.size(); ++m)
    if (std::binary_search(machines[m].begin(), machines[m].end(), member))
      return static_cast<int>(m);
  CORRO_ASSERT(false);
  return -1;
}

const std::vector<int>& Topology::local() const {
  return machines[static_cast<std::size_t>(machine_of(self))];
}

int Topology::local_index() const {
  const auto& members = local();
  return static_cast<int>(std::lower_bound(members.begin(), members.end(), self) - members.begin());
}

bool Topology::all_apart() const {
  return machines.size() == static_cast<std::size_t>(size());
}

int Topology::lanes() const {
  std::size_t least = machines.front().size();
  for (const auto& members : machines) least = std::min(least, members.size());
  return static_cast<int>(least);
}

std::vector<int> Topology::lane(int k) const {
  std::vector<int> members;
  for (const auto& machine : machines) members.push_back(machine[static_cast<std::size_t>(k)]);
  return members;
}

}  // namespace corro::runtime
