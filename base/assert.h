#pragma once

namespace kolo {

[[noreturn]] void assertion_failed(const char* what, const char* file, int line);

}  // namespace kolo

// For our own mistakes only; what a user, a peer or the system may do wrong is an Error.
#define KOLO_ASSERT(condition) \
  ((condition) ? void() : ::kolo::assertion_failed(#condition, __FILE__, __LINE__))
