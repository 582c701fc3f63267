#include "runtime/domain/rounds.h"

#include <algorithm>

#include "runtime/domain/layout.h"

namespace corro::runtime {

namespace {

constexpr std::size_t kLine = 64;  // a multiple of every element's size

constexpr std::size_t ceil_div(std::size_t a, std::size_t b) {
  return a / b + (a % b != 0);
}
constexpr std::size_t lines_up(std::size_t bytes) {
  return ceil_div(bytes, kLine) * kLine;
}
constexpr std::size_t at_least_one(std::size_t n) {
  return std::max<std::size_t>(n, 1);
}

bool has_parts(Kind kind) {
  return kind == Kind::allgather || kind == Kind::reducescatter;
}

}  // namespace

// Measured on two cores.  A second wait costs 0.3 µs while there are cores for all, and a switch
// of processes for each member when there are not; but then the members also share the cores on
// which each of them would reduce everything.
Tuning tuning_for(int members, double processors, std::size_t slot_bytes) {
  const bool crowded = members > processors;
  const auto n = static_cast<std::size_t>(members);
  Tuning out;
  out.slot_bytes = slot_bytes;
  out.whole_bytes = std::min<std::size_t>(slot_bytes, members <= 2 ? 32 << 10 : 16 << 10);
  out.direct_bytes = crowded ? n << 12 : 4 << 10;
  return out;
}

Plan::Plan(const Shape& shape, int members, const Tuning& tuning)
    : kind_(shape.kind), members_(static_cast<std::size_t>(members)), unit_(size_of(shape.type)) {
  if (kind_ == Kind::barrier || kind_ == Kind::alltoall) return;
  total_ = static_cast<std::size_t>(shape.count) * unit_;
  if (has_parts(kind_)) {
    std::size_t end = 0;
    begins_.push_back(end);
    for (const std::uint64_t part : shape.parts) begins_.push_back(end += part * unit_);
  }

  switch (kind_) {
    case Kind::allreduce:
    case Kind::reducescatter:
      whole_ = members == 1 || total_ <= tuning.whole_bytes;
      in_post_ = whole_ && total_ <= kInlineBytes;
      if (whole_) return;
      if (kind_ == Kind::allreduce)
        cut_allreduce(tuning);
      else
        cut_parts(tuning);
      return;
    case Kind::allgather: {
      std::size_t longest = 0;
      for (std::size_t k = 0; k < members_; ++k)
        longest = std::max(longest, begins_[k + 1] - begins_[k]);
      cut_stream(longest, tuning.slot_bytes);
      return;
    }
    case Kind::broadcast:
      cut_stream(total_, tuning.slot_bytes);
      return;
    case Kind::alltoall:
    case Kind::barrier:
      return;
  }
}

// Rounding a width up to whole lines adds less than a line for each member, so that much of the
// slot is left free.
void Plan::cut_allreduce(const Tuning& tuning) {
  const std::size_t room = tuning.slot_bytes - kLine * members_;
  width_ = lines_up(ceil_div(total_, ceil_div(total_, room) * members_));
  chunks_ = ceil_div(total_, width_ * members_);
  last_width_ = lines_up(ceil_div(total_ - (chunks_ - 1) * width_ * members_, members_));
  hands_results_on_ = true;
}

void Plan::cut_parts(const Tuning& tuning) {
  chunks_ = ceil_div(total_, tuning.slot_bytes - kLine * members_);
  std::size_t place = 0;
  for (std::size_t k = 0; k < members_; ++k) {
    widths_.push_back(lines_up(ceil_div(begins_[k + 1] - begins_[k], chunks_)));
    places_.push_back(place);
    place += widths_.back();
  }
}

void Plan::cut_stream(std::size_t longest, std::size_t slot) {
  in_post_ = longest <= kInlineBytes;
  whole_ = longest <= slot;
  width_ = whole_ ? longest : lines_up(ceil_div(longest, ceil_div(longest, slot)));
  chunks_ = whole_ ? 1 : ceil_div(longest, width_);
}

Range Plan::part(int member) const {
  const auto k = static_cast<std::size_t>(member);
  return {begins_[k], begins_[k + 1]};
}

Range Plan::slice(std::uint64_t chunk, int member) const {
  const auto k = static_cast<std::size_t>(member);
  switch (kind_) {
    case Kind::allreduce: {
      if (whole_) return {0, total_};
      const std::size_t width = chunk + 1 == chunks_ ? last_width_ : width_;
      const std::size_t begin = chunk * width_ * members_ + k * width;
      return {std::min(begin, total_), std::min(begin + width, total_)};
    }
    case Kind::reducescatter:
    case Kind::allgather: {
      const Range all = part(member);
      if (whole_) return all;
      const std::size_t width = kind_ == Kind::allgather ? width_ : widths_[k];
      const std::size_t begin = all.begin + chunk * width;
      return {std::min(begin, all.end), std::min(begin + width, all.end)};
    }
    case Kind::broadcast: {
      const std::size_t begin = chunk * width_;
      return {std::min(begin, total_), std::min(begin + width_, total_)};
    }
    case Kind::alltoall:
    case Kind::barrier:
      break;
  }
  return {};
}

std::size_t Plan::place(int member) const {
  const auto k = static_cast<std::size_t>(member);
  if (kind_ == Kind::allreduce) return whole_ ? 0 : k * width_;
  if (kind_ == Kind::reducescatter) return whole_ ? begins_[k] : places_[k];
  return 0;
}

Range Plan::share(int member) const {
  const std::size_t width = lines_up(ceil_div(total_, members_));
  const std::size_t begin = static_cast<std::size_t>(member) * width;
  return {std::min(begin, total_), std::min(begin + width, total_)};
}

PairSlots PairSlots::of(int members, std::size_t slot_bytes) {
  const auto n = static_cast<std::size_t>(members);
  const std::size_t counts = lines_up(2 * n * sizeof(std::uint64_t));
  return {counts, (slot_bytes - counts) / n / kLine * kLine};
}

std::uint64_t PairSlots::chunks(std::size_t longest_bytes) const {
  return at_least_one(ceil_div(longest_bytes, width));
}

Range PairSlots::slice(std::uint64_t chunk, std::size_t bytes) const {
  const std::size_t begin = chunk * width;
  return {std::min(begin, bytes), std::min(begin + width, bytes)};
}

}  // namespace corro::runtime
