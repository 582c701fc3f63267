#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/op/op.h"
#include "runtime/pattern/costs.h"
#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// The schedules by the names that users know them by.  One name can mean a schedule for several
// collectives.
enum class Algorithm : std::uint8_t {
  ring,
  halving_doubling,
  recursive_doubling,
  recursive_halving,
  pairwise,
  tree,
  chain,
  dissemination,
};
constexpr Algorithm last_of(Algorithm) {
  return Algorithm::dissemination;
}
std::string_view name_of(Algorithm);
std::optional<Algorithm> algorithm_named(std::string_view);
std::optional<Kind> kind_named(std::string_view);

// At least one; at least one of them needs no scratch.  Of two that cost about the same, the
// one that comes first is chosen.
std::span<const Algorithm> algorithms_for(Kind);
bool can_do(Algorithm, Kind);

// One rank's schedule.  The algorithm can do the operation, and the operation is valid (op.h).
// Adasum is not a reduction of two elements at a time, so no schedule here can do it.
std::unique_ptr<Schedule> make_schedule(Algorithm, const Operation&, int rank, int ranks,
                                        const Costs& = {});

// Elements of one chunk of the chain broadcast.  Smaller ones reach the last rank earlier, but
// each has the cost of a message.
std::size_t chain_chunk(const Shape&, int ranks, const Costs&);

}  // namespace corro::runtime
