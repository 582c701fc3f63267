#include "runtime/pattern/sequence.h"

#include <utility>

#include "base/assert.h"

namespace corro::runtime {

Sequence::Sequence(std::unique_ptr<Schedule> first, std::unique_ptr<Schedule> second)
    : first_(std::move(first)), second_(std::move(second)) {
  CORRO_ASSERT(first_->local_copy().empty() || second_->local_copy().empty());
}

Step Sequence::step(int k) const {
  const int before = first_->steps();
  return k < before ? first_->step(k) : second_->step(k - before);
}

LocalCopy Sequence::local_copy() const {
  const LocalCopy first = first_->local_copy();
  return first.empty() ? second_->local_copy() : first;
}

std::size_t Sequence::scratch() const {
  return std::max(first_->scratch(), second_->scratch());
}

}  // namespace corro::runtime
