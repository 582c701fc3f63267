#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace kolo {

void assertion_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "kolo: internal error: %s does not hold (%s:%d)\n", what, file, line);
  std::abort();
}

}  // namespace kolo
