#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "runtime/domain/domain.h"
#include "runtime/domain/segment.h"

namespace corro::runtime {

// Which parts of a range of offsets are in use.  First fit from the lowest offset, so that pages
// which were touched once are used again; neighbours that are free become one.
class FreeList {
 public:
  explicit FreeList(std::size_t bytes);

  // From 2 MB on aligned to 2 MB, for huge pages; else to a line.
  std::optional<std::size_t> take(std::size_t bytes);

  // False: nothing begins there.
  bool give_back(std::size_t offset);

  std::size_t used() const { return used_; }

 private:
  std::map<std::size_t, std::size_t> free_, taken_;  // offset → bytes
  std::size_t used_ = 0;
};

// Memory of this rank that the others map as well, for tensors that are reduced where they are
// (corro_alloc).  Sparse: pages come when they are touched, and stay for the next tensor.
//
// Lives as long as any reference to it: the library's, or a tensor's.  Any thread may call.
class Arena {
 public:
  static Result<std::shared_ptr<Arena>> create(std::size_t bytes);

  // So large that it need not grow: the machine's memory, if all members' arenas together fit
  // into a process's addresses.
  static std::size_t default_bytes(int members);

  // Null: full.
  void* allocate(std::size_t bytes);
  bool release(void*);

  // Where a buffer lies in the arena, if all of it does.
  std::optional<std::uint64_t> offset_of(const void*, std::size_t bytes) const;

  int memory() const { return memory_.get(); }
  MutByteView view() const { return {mapping_.data(), mapping_.size()}; }
  std::size_t used() const;

  // Once every other member has it.
  void close_memory() { memory_.reset(); }

 private:
  Arena(Fd memory, Mapping mapping)
      : memory_(std::move(memory)), mapping_(std::move(mapping)), list_(mapping_.size()) {}

  Fd memory_;
  Mapping mapping_;
  mutable std::mutex mutex_;
  FreeList list_;
};

// The arenas of all members, mapped to be read and written; their descriptors are closed.
// Shared by all domains of a process, which choose theirs from it.
class Arenas {
 public:
  static Result<std::shared_ptr<Arenas>> open(std::shared_ptr<Arena> mine, std::size_t index,
                                              std::vector<Membership> members);

  const std::shared_ptr<Arena>& mine() const { return mine_; }
  const std::vector<MutByteView>& views() const { return views_; }

 private:
  Arenas() = default;

  std::shared_ptr<Arena> mine_;
  std::vector<Mapping> mappings_;
  std::vector<MutByteView> views_;
};

}  // namespace corro::runtime
