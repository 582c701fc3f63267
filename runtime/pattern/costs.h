#pragma once

#include <cstddef>

namespace corro::runtime {

// What messages cost on the links of a group.  All ranks must use the same values, so they are
// either these or come from one rank's measurements through the store.
//
// The defaults are for TCP between machines: 10 Gbit/s, a wake-up on each side.
struct Costs {
  double latency_s = 30e-6;  // of a step: an empty message, until its receiver has acted on it
  double seconds_per_byte = 0.8e-9;
  double reduce_seconds_per_byte = 0.1e-9;

  // A byte to any other rank than the next on the ring costs so many times more.  On the ring each
  // link carries one flow each way, and with ranks in the order of hosts most stay on a host; flows
  // between distant ranks meet on the links of hosts and switches.
  double distant_factor = 1.1;

  // An algorithm that needs more scratch on some rank is not chosen, unless by the user.
  std::size_t most_scratch_bytes = 8 << 20;

  bool operator==(const Costs&) const = default;
};

}  // namespace corro::runtime
