#pragma once

#include <utility>

namespace corro {

// One byte that the kernel sets to zero in a forked child: to ask for the own pid would be a
// system call each time.
class ForkMark {
 public:
  ForkMark() = default;
  static ForkMark make();
  ForkMark(ForkMark&& other) noexcept : byte_(std::exchange(other.byte_, nullptr)) {}
  ForkMark& operator=(ForkMark&& other) noexcept {
    std::swap(byte_, other.byte_);
    return *this;
  }
  ~ForkMark();

  // Whether this is the process that made it.  Never, if there was no memory for it.
  bool here() const { return byte_ && *byte_ != 0; }

 private:
  unsigned char* byte_ = nullptr;
};

}  // namespace corro
