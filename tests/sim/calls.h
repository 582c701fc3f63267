#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "runtime/op/op.h"
#include "tests/support/sim_time.h"

namespace corro::runtime {

// A collective that all ranks of a simulated world call, with made-up elements, and what must
// come out of it.
class Call {
 public:
  Call() = default;  // a barrier
  static Call random(test::Chance&, int size);

  // As a rank calls it.
  Operation operation(int rank) const;
  std::string text() const { return shape_.text(); }
  bool in_place() const { return in_place_; }

  // What a rank brings, and how many bytes it gets.
  Bytes brought(int rank) const;
  std::size_t bytes_out(int rank) const { return operation(rank).out_bytes(rank); }

  // What is wrong with what a rank got.  Where all ranks get the same, the first to ask sets the
  // bits that all must have.
  std::optional<std::string> wrong(int rank, const Bytes& got);

 private:
  double element(int rank, std::size_t i) const;
  double reduced(std::size_t i) const;
  double wanted(int rank, std::size_t i) const;
  std::uint64_t split(int from, int to) const;
  std::size_t begin_of(int rank) const;  // of its part

  Shape shape_;
  bool in_place_ = false;
  int size_ = 1;
  std::uint64_t salt_ = 0;
  // Whole numbers add up exactly in any order; thirds do not, and show whether all ranks have
  // added in the same order.
  bool whole_numbers_ = true;
  std::optional<Bytes> first_;
};

}  // namespace corro::runtime
