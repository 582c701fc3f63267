#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/fd.h"
#include "base/result.h"
#include "runtime/domain/layout.h"

namespace corro::runtime {

// Owns one mapping of shared memory.  A forked child does not have it: what it would write there,
// it would write into its parent's tensors.
class Mapping {
 public:
  enum class Access { read, write };
  enum class Pages { when_touched, now };

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  static Result<Mapping> of(int fd, std::size_t bytes, Access, Pages);

  std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Mapping(std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

// Anonymous shared memory of exactly this size, which no holder of the descriptor can change, so
// that no access to it ever faults.  `filled`: all pages are there, or it is an error.
// Refused where memfd is denied; the caller then talks TCP.
enum class Filled { no, yes };
Result<Fd> make_memory(const char* name, std::size_t bytes, Filled);

// The size of another process's memory, if it can be trusted: a memfd that can no longer shrink.
Result<std::size_t> checked_size(int memory);

// This member's segment: made, filled with pages, and its header written.
class Segment {
 public:
  static Result<Segment> create(const Layout&, const CpuClaim&);

  Control& control() const { return *reinterpret_cast<Control*>(mapping_.data()); }
  std::uint8_t* data() const { return mapping_.data(); }
  const Layout& layout() const { return layout_; }
  int memory() const { return memory_.get(); }
  Fd take_memory() { return std::move(memory_); }

 private:
  Segment(Fd memory, Mapping mapping, const Layout& layout)
      : memory_(std::move(memory)), mapping_(std::move(mapping)), layout_(layout) {}

  Fd memory_;
  Mapping mapping_;
  Layout layout_;
};

// Another member's segment, checked and mapped to be read.
class PeerSegment {
 public:
  static Result<PeerSegment> map(int memory);

  const Control& control() const { return *reinterpret_cast<const Control*>(mapping_.data()); }
  const std::uint8_t* data() const { return mapping_.data(); }
  const Layout& layout() const { return layout_; }

 private:
  PeerSegment(Mapping mapping, const Layout& layout)
      : mapping_(std::move(mapping)), layout_(layout) {}

  Mapping mapping_;
  Layout layout_;  // read once: the owner may change its header
};

}  // namespace corro::runtime
