#pragma once

#include <optional>
#include <string>

#include "runtime/transport/message.h"
#include "tests/support/sim_time.h"

namespace corro::runtime {

// A collective that all ranks of a simulated world call, with made-up elements, and what must
// come out of it.
class Call {
 public:
  Call() = default;  // a barrier
  static Call random(test::Chance&, int size);

  const Operation& operation() const { return operation_; }

  // What a rank brings.
  Bytes brought(int rank) const;

  // What is wrong with what a rank got.  The first to ask sets the bits that all must have.
  std::optional<std::string> wrong(int rank, const Bytes& got);

 private:
  double element(int rank, std::size_t i) const;
  double wanted(std::size_t i) const;

  Operation operation_;
  int size_ = 1;
  std::uint64_t salt_ = 0;
  // Whole numbers add up exactly in any order; thirds do not, and show whether all ranks have
  // added in the same order.
  bool whole_numbers_ = true;
  std::optional<Bytes> first_;
};

}  // namespace corro::runtime
