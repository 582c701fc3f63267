#include "runtime/domain/stream.h"

#include <algorithm>
#include <cstring>

// The thread sanitizer does not see such stores; it gets ordinary ones.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define CORRO_STREAMS 1
#include <emmintrin.h>
#endif

namespace corro::runtime {

#ifdef CORRO_STREAMS

namespace {
constexpr std::size_t kLine = 64;
}

void stream_copy(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  const std::size_t head =
      std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  std::size_t at = head;
  // Whole lines only: a line of which a part is missing goes to memory in pieces.
  for (; at + kLine <= bytes; at += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

void stream_fence() {
  _mm_sfence();
}

#else

void stream_copy(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void stream_fence() {}

#endif

}  // namespace corro::runtime
