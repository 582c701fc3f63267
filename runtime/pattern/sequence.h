#pragma once

#include <memory>

#include "runtime/pattern/schedule.h"

namespace corro::runtime {

// One schedule after the other, on the same buffers; the second finds in `scratch` what the first
// left there.  Only one of them may have a local copy, and it is done before the first step.
//
// If one of the two keeps the promise that all ranks have begun, so does the sequence.  That no
// mismatch is silent is up to the first.
class Sequence final : public Schedule {
 public:
  Sequence(std::unique_ptr<Schedule> first, std::unique_ptr<Schedule> second);

  int steps() const override { return first_->steps() + second_->steps(); }
  Step step(int k) const override;
  LocalCopy local_copy() const override;
  std::size_t scratch() const override;

 private:
  std::unique_ptr<Schedule> first_, second_;
};

}  // namespace corro::runtime
