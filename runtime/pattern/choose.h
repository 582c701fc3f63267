#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/op/op.h"
#include "runtime/pattern/algorithm.h"
#include "runtime/pattern/costs.h"
#include "runtime/pattern/overrides.h"

// Which algorithm does an operation.  Pure, from values that all ranks of a group agree on, so all
// choose the same without a message.
namespace corro::runtime {

// What an algorithm does from its first message to its last: of each step what its busiest rank
// does.  With parts of different sizes, an upper bound.
struct Work {
  double steps = 0;
  double bytes = 0;
  double reduced_bytes = 0;
  bool distant = false;  // sends to other ranks than the next on the ring
};
Work work(Algorithm, const Shape&, int ranks, const Costs&);

// Scratch of the rank that needs most.
std::uint64_t scratch_bytes(Algorithm, const Shape&, int ranks);

// Seconds.  For alltoall, whose sizes the shape does not say, those of empty messages.
double estimate(Algorithm, const Shape&, int ranks, const Costs&);

// The user's, where a rule fits; else, of those that need no more scratch than the costs allow,
// the one with the least estimate.  Of estimates within a hundredth the first in algorithms_for
// wins, so that rounding decides nothing.
Algorithm choose(const Shape&, int ranks, const Costs&, const Overrides& = {});

// From so many bytes on, up to the next choice, the same algorithm.
struct Choice {
  std::uint64_t from = 0;
  Algorithm algorithm;
  bool by_user = false;
  double seconds = 0;  // the estimate at `from`
  bool operator==(const Choice&) const = default;
};

// For parts of equal size, and up to 1 TB.
std::vector<Choice> choices(Kind, int ranks, const Costs&, const Overrides& = {});

// All of them as a table for people.
std::string explain(int ranks, const Costs&, const Overrides& = {});

}  // namespace corro::runtime
