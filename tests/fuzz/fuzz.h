#pragma once

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "base/bytes.h"

// What a fuzz target is made of.
namespace corro::fuzz {

inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

// What `work` gives, which must not take long.  Sanitizers cost a factor of ten and more.
template <class Work>
auto in_time(Work work) {
  constexpr double kSeconds = 0.1 * 20;
  const auto now = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  auto result = work();
  require(now() - start < kSeconds, "no input takes longer than 100 ms");
  return result;
}

// Nothing that a shell or ssh would take for something else.
inline bool is_host_name(std::string_view name) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:";
  return !name.empty() && name.size() <= 255 && name[0] != '-' &&
         name.find_first_not_of(kLetters) == name.npos;
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

}  // namespace corro::fuzz
