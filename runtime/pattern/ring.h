#pragma once

namespace corro::runtime {

// The ranks in a circle: 0 → 1 → … → ranks-1 → 0.
constexpr int ring_next(int rank, int ranks) {
  return (rank + 1) % ranks;
}
constexpr int ring_previous(int rank, int ranks) {
  return (rank + ranks - 1) % ranks;
}

// The rank `by` places after `rank`; `by` may be negative, by less than two rounds.
constexpr int ring_shift(int rank, int by, int ranks) {
  return (rank + by + 2 * ranks) % ranks;
}

}  // namespace corro::runtime
