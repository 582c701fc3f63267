#pragma once

#include <cstdio>
#include <cstdlib>

#include "base/bytes.h"

// What a fuzz target is made of.
namespace kolo::fuzz {

inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

// The input, taken from the front.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  ByteView take(std::size_t n) {
    const auto taken = left_.first(n < left_.size() ? n : left_.size());
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::uint8_t byte() {
    const auto one = take(1);
    return one.empty() ? 0 : one[0];
  }
  ByteView rest() const { return left_; }

 private:
  ByteView left_;
};

}  // namespace kolo::fuzz
