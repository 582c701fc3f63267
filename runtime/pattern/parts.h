#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/op/pieces.h"

namespace corro::runtime {

// Neighbouring parts of one buffer, one for each rank, of any size.
class Parts {
 public:
  explicit Parts(std::span<const std::uint64_t> sizes) {
    begins_.reserve(sizes.size() + 1);
    begins_.push_back(0);
    for (const std::uint64_t size : sizes) begins_.push_back(begins_.back() + size);
  }

  int count() const { return static_cast<int>(begins_.size()) - 1; }
  std::size_t total() const { return begins_.back(); }
  Range operator[](int index) const { return between(index, index + 1); }

  // Parts first to last-1.
  Range between(int first, int last) const { return {begin(first), begin(last)}; }

  std::size_t largest() const {
    std::size_t most = 0;
    for (int i = 0; i < count(); ++i) most = std::max(most, (*this)[i].size());
    return most;
  }

 private:
  std::size_t begin(int index) const { return begins_[static_cast<std::size_t>(index)]; }

  std::vector<std::size_t> begins_;  // of each part, and the end of the last
};

}  // namespace corro::runtime
