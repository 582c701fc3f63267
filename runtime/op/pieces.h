#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace corro::runtime {

// [begin, end), in elements or in bytes as the user of it says.
struct Range {
  std::size_t begin = 0, end = 0;

  constexpr std::size_t size() const { return end - begin; }
  constexpr bool empty() const { return begin == end; }
  constexpr Range scaled(std::size_t by) const { return {begin * by, end * by}; }
  bool operator==(const Range&) const = default;
};

// One logical buffer that lies in memory as a list of pieces, so that fused tensors need no
// packing copy.  Borrows the memory.  A single piece, the common case, allocates nothing.
template <class Byte>
class BasicPieces {
 public:
  using Piece = std::span<Byte>;

  BasicPieces() = default;
  explicit BasicPieces(Piece only) : only_(only), size_(only.size()) {}
  explicit BasicPieces(std::vector<Piece> pieces) {
    std::erase_if(pieces, [](const Piece& p) { return p.empty(); });
    if (pieces.size() == 1) {
      *this = BasicPieces(pieces.front());
      return;
    }
    many_ = std::move(pieces);
    for (const Piece& p : many_) {
      begins_.push_back(size_);
      size_ += p.size();
    }
  }

  std::size_t size() const { return size_; }
  bool contiguous() const { return many_.empty(); }
  std::span<const Piece> pieces() const {
    return many_.empty() ? std::span<const Piece>(&only_, only_.empty() ? 0 : 1) : many_;
  }

  // The memory of the byte at `at`, as far as it is contiguous, at most `most` bytes.  Never
  // empty while `at` is inside and `most` is not 0.
  Piece at(std::size_t at, std::size_t most) const {
    if (many_.empty()) return only_.subspan(at, std::min(most, size_ - at));
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), at);
    const auto index = static_cast<std::size_t>(after - begins_.begin()) - 1;
    const Piece piece = many_[index];
    const std::size_t offset = at - begins_[index];
    return piece.subspan(offset, std::min(most, piece.size() - offset));
  }

  // A part of the logical buffer, in the same memory.
  BasicPieces slice(Range bytes) const {
    if (many_.empty()) return BasicPieces(only_.subspan(bytes.begin, bytes.size()));
    std::vector<Piece> parts;
    each(bytes, [&](Piece part) { parts.push_back(part); });
    return BasicPieces(std::move(parts));
  }

  // Calls fn(Piece) for each contiguous part of a range of bytes, in order.
  template <class Fn>
  void each(Range bytes, Fn fn) const {
    for (std::size_t next = bytes.begin; next < bytes.end;) {
      const Piece part = at(next, bytes.end - next);
      fn(part);
      next += part.size();
    }
  }

 private:
  Piece only_;
  std::vector<Piece> many_;
  std::vector<std::size_t> begins_;  // where each of `many_` begins in the logical buffer
  std::size_t size_ = 0;
};

using Pieces = BasicPieces<const std::uint8_t>;
using MutPieces = BasicPieces<std::uint8_t>;

}  // namespace corro::runtime
