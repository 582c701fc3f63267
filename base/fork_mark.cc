#include "base/fork_mark.h"

#include <sys/mman.h>

namespace corro {

namespace {

constexpr std::size_t kPageBytes = 4096;

}  // namespace

ForkMark ForkMark::make() {
  void* at =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ForkMark mark;
  if (at == MAP_FAILED) return mark;
  if (::madvise(at, kPageBytes, MADV_WIPEONFORK) != 0) {
    ::munmap(at, kPageBytes);  // before Linux 4.14
    return mark;
  }
  mark.byte_ = static_cast<unsigned char*>(at);
  *mark.byte_ = 1;
  return mark;
}

ForkMark::~ForkMark() {
  if (byte_) ::munmap(byte_, kPageBytes);
}

}  // namespace corro
