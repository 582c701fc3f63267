#pragma once

#include <algorithm>
#include <cstddef>

// Who sends what to whom, and in which order: arithmetic on ranks and elements, with no idea of
// sockets, types or memory.
namespace corro::runtime {

// The elements [begin, end) of a buffer.
struct Range {
  std::size_t begin = 0, end = 0;

  constexpr std::size_t size() const { return end - begin; }
  constexpr bool empty() const { return begin == end; }
  bool operator==(const Range&) const = default;
};

// One of `parts` neighbouring parts of `count` elements, which differ in size by one at most.
// With fewer elements than parts the last ones are empty.
constexpr Range part_of(std::size_t count, int parts, int index) {
  const auto n = static_cast<std::size_t>(parts), i = static_cast<std::size_t>(index);
  const std::size_t least = count / n, longer = count % n;
  const std::size_t begin = i * least + std::min(i, longer);
  return {begin, begin + least + (i < longer ? 1 : 0)};
}

inline constexpr int kNobody = -1;

// What happens to received elements.
enum class Act {
  copy,
  reduce,
  complete,  // the last reduce of a range: with it the range has everyone's part
};

// One rank's part in one step.  A message goes to `to` and one comes from `from`, unless that is
// nobody; a range may be empty, and then the message says only that its sender has got so far.
struct Step {
  int to = kNobody, from = kNobody;
  Range send, recv;
  Act act = Act::copy;
  bool operator==(const Step&) const = default;
};

// One rank's part in a whole operation, step by step.  A message sent in step k is received in
// step k.  A rank begins a step when it is done with the one before, so what it sends in a step
// it may have received in an earlier one.
//
// Steps are computed when asked for: a schedule costs nothing to make, whatever the world's size.
class Schedule {
 public:
  virtual ~Schedule() = default;

  virtual int steps() const = 0;
  virtual Step step(int k) const = 0;
};

}  // namespace corro::runtime
