#pragma once

#include <vector>

namespace corro::runtime {

// The ranks in a circle: 0 → 1 → … → size-1 → 0.
constexpr int ring_next(int rank, int size) {
  return (rank + 1) % size;
}
constexpr int ring_previous(int rank, int size) {
  return (rank + size - 1) % size;
}

// Those that a rank speaks with in any schedule on the ring, itself left out.
std::vector<int> ring_neighbours(int rank, int size);

}  // namespace corro::runtime
