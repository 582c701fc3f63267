#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace corro {

void assertion_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "corro: internal error: %s does not hold (%s:%d)\n", what, file, line);
  std::abort();
}

}  // namespace corro
