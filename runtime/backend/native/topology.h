#pragma once

#include <span>
#include <vector>

namespace corro::runtime {

// Which members of a group share a machine, by index in the group.  Every member has the same
// topology.
struct Topology {
  std::vector<std::vector<int>> machines;  // members of each, ascending; machines by first member
  int self = 0;

  // One machine for each distinct value; `same[i]` is what member i has in common with others.
  static Topology by(std::span<const int> same, int self);

  int size() const;
  int machine_of(int member) const;  // index in `machines`
  const std::vector<int>& local() const;
  int local_index() const;

  bool one_machine() const { return machines.size() == 1; }
  bool all_apart() const;

  // Two-level operations cut a tensor into as many lanes as the smallest machine has members; the
  // members with local index k of all machines work on lane k.
  int lanes() const;
  std::vector<int> lane(int k) const;
};

}  // namespace corro::runtime
