#include "runtime/domain/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <new>
#include <utility>

namespace corro::runtime {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::size_t kMostSlotBytes = std::size_t{1} << 30;

constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

Layout layout_for(int ranks, std::size_t slot_bytes) {
  const auto n = static_cast<std::size_t>(ranks);
  // Room for the counts of an all-to-all and for a slice of one line at least for each rank.
  const std::size_t least = n * 4 * kLinePair;
  const std::size_t slot = round_up(std::max(slot_bytes, least), 4096);
  return {slot, round_up(slot / n + kLinePair, 4096)};
}

// Measured with 2, 4 and 8 ranks on two cores: 256 KB to 1 MB are within 10 % of each other, 128 KB
// is a fifth slower and 2 MB falls out of the caches.  With many ranks a slice should still be
// worth a wait.
std::size_t default_slot_bytes(int ranks) {
  return std::max(std::size_t{512} << 10, static_cast<std::size_t>(ranks) << 13);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Result<Mapping> Mapping::of(int fd, std::size_t bytes, Access access, Pages pages) {
  const int protection = access == Access::write ? PROT_READ | PROT_WRITE : PROT_READ;
  // The pages of a sparse arena are counted when they are touched, not when they are mapped.
  const int flags = MAP_SHARED | (pages == Pages::now ? 0 : MAP_NORESERVE);
  void* at = ::mmap(nullptr, bytes, protection, flags, fd, 0);
  if (at == MAP_FAILED) return Error::from_errno("mapping shared memory");
  Mapping mapping(static_cast<std::uint8_t*>(at), bytes);
  if (::madvise(at, bytes, MADV_DONTFORK) != 0)
    return Error::from_errno("keeping shared memory from forked children");
  // Only where the system has huge pages for shared memory; a refusal costs nothing.
  (void)::madvise(at, bytes, MADV_HUGEPAGE);
  if (pages == Pages::now) {
#ifdef MADV_POPULATE_READ
    // Kernels before 5.14 do not know it; then the pages are mapped as they are touched.
    (void)::madvise(at, bytes, access == Access::write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
#endif
  }
  return mapping;
}

Result<Fd> make_memory(const char* name, std::size_t bytes, Filled filled) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return Error::from_errno("making shared memory");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return Error::from_errno("sizing shared memory");
  // Without this, memory that the control group denies would be a SIGBUS at the first touch.
  if (filled == Filled::yes && ::fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes)) != 0)
    return Error::from_errno("filling shared memory");
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
    return Error::from_errno("sealing shared memory");
  return fd;
}

Result<std::size_t> checked_size(int memory) {
  const int seals = ::fcntl(memory, F_GET_SEALS);
  if (seals < 0) return Error::from_errno("reading the seals of another rank's memory");
  if ((seals & F_SEAL_SHRINK) == 0)
    return Error(Errc::malformed, "another rank's memory is not sealed");
  struct stat about {};
  if (::fstat(memory, &about) != 0) return Error::from_errno("sizing another rank's memory");
  return static_cast<std::size_t>(about.st_size);
}

Result<Segment> Segment::create(const Layout& layout, const CpuClaim& cpus) {
  auto memory = make_memory("corro-domain", layout.bytes(), Filled::yes);
  if (!memory) return memory.error();
  auto mapping =
      Mapping::of(memory->get(), layout.bytes(), Mapping::Access::write, Mapping::Pages::now);
  if (!mapping) return mapping.error();
  auto* control = new (mapping->data()) Control;
  control->header.bytes = layout.bytes();
  control->header.slot_bytes = layout.slot_bytes;
  control->header.result_bytes = layout.result_bytes;
  control->header.cpus = cpus;
  return Segment(std::move(*memory), std::move(*mapping), layout);
}

Result<PeerSegment> PeerSegment::map(int memory) {
  const auto size = checked_size(memory);
  if (!size) return size.error();
  if (*size < kControlBytes)
    return Error(Errc::malformed, fmt::format("another rank's memory has only {} bytes", *size));
  auto mapping = Mapping::of(memory, *size, Mapping::Access::read, Mapping::Pages::now);
  if (!mapping) return mapping.error();
  const SegmentHeader header = reinterpret_cast<const Control*>(mapping->data())->header;
  const Layout layout{header.slot_bytes, header.result_bytes};
  const bool sane = header.magic == SegmentHeader::kMagic && layout.slot_bytes <= kMostSlotBytes &&
                    layout.result_bytes <= kMostSlotBytes && layout.slot_bytes % kLinePair == 0 &&
                    layout.result_bytes % kLinePair == 0 && layout.bytes() == *size;
  if (!sane) return Error(Errc::malformed, "another rank's memory is not laid out as ours");
  return PeerSegment(std::move(*mapping), layout);
}

}  // namespace corro::runtime
