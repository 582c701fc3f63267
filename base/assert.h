#pragma once

namespace corro {

[[noreturn]] void assertion_failed(const char* what, const char* file, int line);

}  // namespace corro

// For our own mistakes only; what a user, a peer or the system may do wrong is an Error.
#define CORRO_ASSERT(condition) \
  ((condition) ? void() : ::corro::assertion_failed(#condition, __FILE__, __LINE__))
