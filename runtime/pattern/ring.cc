#include "runtime/pattern/ring.h"

namespace corro::runtime {

std::vector<int> ring_neighbours(int rank, int size) {
  if (size == 1) return {};
  const int next = ring_next(rank, size), previous = ring_previous(rank, size);
  return next == previous ? std::vector{next} : std::vector{previous, next};
}

}  // namespace corro::runtime
