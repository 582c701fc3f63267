#include "runtime/domain/arena.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace corro::runtime {

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Of the 128 TB that a process has on x86-64, and of the 256 TB on ARM64, this many for arenas.
constexpr std::size_t kAddresses = std::size_t{32} << 40;

constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

FreeList::FreeList(std::size_t bytes) {
  if (bytes > 0) free_.emplace(0, bytes);
}

std::optional<std::size_t> FreeList::take(std::size_t bytes) {
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kLine;
  if (bytes > ~std::size_t{0} - kHugePage) return std::nullopt;
  const std::size_t wanted = round_up(std::max<std::size_t>(bytes, 1), kLine);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, size] = *it;
    const std::size_t at = round_up(begin, alignment);
    if (at - begin > size || size - (at - begin) < wanted) continue;
    free_.erase(it);
    if (at > begin) free_.emplace(begin, at - begin);
    if (at + wanted < begin + size) free_.emplace(at + wanted, begin + size - at - wanted);
    taken_.emplace(at, wanted);
    used_ += wanted;
    return at;
  }
  return std::nullopt;
}

bool FreeList::give_back(std::size_t offset) {
  const auto taken = taken_.find(offset);
  if (taken == taken_.end()) return false;
  std::size_t begin = offset, size = taken->second;
  used_ -= size;
  taken_.erase(taken);
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && after->first == begin + size) {
    size += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  free_.emplace(begin, size);
  return true;
}

std::size_t Arena::default_bytes(int members) {
  const auto pages = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<std::size_t>(std::max(4096L, ::sysconf(_SC_PAGESIZE)));
  const std::size_t fair = kAddresses / static_cast<std::size_t>(std::max(members, 1));
  return round_up(std::min(pages * page, fair), kHugePage);
}

Result<std::shared_ptr<Arena>> Arena::create(std::size_t bytes) {
  bytes = round_up(bytes, kHugePage);
  auto memory = make_memory("corro-arena", bytes, Filled::no);
  if (!memory) return memory.error();
  auto mapping =
      Mapping::of(memory->get(), bytes, Mapping::Access::write, Mapping::Pages::when_touched);
  if (!mapping) return mapping.error();
  return std::shared_ptr<Arena>(new Arena(std::move(*memory), std::move(*mapping)));
}

void* Arena::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto offset = list_.take(bytes);
  return offset ? mapping_.data() + *offset : nullptr;
}

bool Arena::release(void* at) {
  const auto offset = offset_of(at, 0);
  if (!offset) return false;
  const std::lock_guard lock(mutex_);
  return list_.give_back(*offset);
}

std::optional<std::uint64_t> Arena::offset_of(const void* at, std::size_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(mapping_.data());
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  if (address < begin || address - begin >= mapping_.size()) return std::nullopt;
  const std::size_t offset = address - begin;
  if (bytes > mapping_.size() - offset) return std::nullopt;
  return offset;
}

std::size_t Arena::used() const {
  const std::lock_guard lock(mutex_);
  return list_.used();
}

Result<std::shared_ptr<Arenas>> Arenas::open(std::shared_ptr<Arena> mine, std::size_t index,
                                             std::vector<Membership> members) {
  std::shared_ptr<Arenas> out(new Arenas);
  for (std::size_t k = 0; k < members.size(); ++k) {
    if (k == index) {
      out->views_.push_back(mine->view());
      continue;
    }
    const auto doing = [&] {
      return fmt::format("sharing memory with {}", members[k].peer.text());
    };
    const auto size = checked_size(members[k].memory.get());
    if (!size) return Error(size.error()).during(doing());
    auto mapping = Mapping::of(members[k].memory.get(), *size, Mapping::Access::write,
                               Mapping::Pages::when_touched);
    if (!mapping) return std::move(mapping.error()).during(doing());
    members[k].memory.reset();
    out->views_.emplace_back(mapping->data(), mapping->size());
    out->mappings_.push_back(std::move(*mapping));
  }
  mine->close_memory();
  out->mine_ = std::move(mine);
  return out;
}

}  // namespace corro::runtime
