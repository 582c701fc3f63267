#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/op/pieces.h"

// Which range of which buffer goes to whom at step k: arithmetic on ranks and elements, with no
// idea of sockets, types or memory.
namespace corro::runtime {

// One of `parts` neighbouring parts of `count` elements, which differ in size by one at most.
// With fewer elements than parts the last ones are empty.
constexpr Range part_of(std::size_t count, int parts, int index) {
  const auto n = static_cast<std::size_t>(parts), i = static_cast<std::size_t>(index);
  const std::size_t least = count / n, longer = count % n;
  const std::size_t begin = i * least + std::min(i, longer);
  return {begin, begin + least + (i < longer ? 1 : 0)};
}

inline constexpr int kNobody = -1;

// `in` is only read.  `scratch` is as large as the schedule asks for.
enum class Buffer : std::uint8_t { in, out, scratch };

struct Slice {
  Buffer buffer = Buffer::out;
  Range range;  // elements
  bool operator==(const Slice&) const = default;
};

// What happens to received elements.
enum class Act : std::uint8_t {
  copy,      // recv = received
  reduce,    // recv = operand ∘ received
  complete,  // the same, and with it the range has every rank's part
};

// One rank's part in one step.  A message goes to `to` and one comes from `from`, unless that is
// kNobody; a range may be empty, and then the message says only that its sender has got so far.
struct Step {
  int to = kNobody, from = kNobody;  // indexes in the group
  Slice send;                        // unchanged by this step
  Slice recv;                        // where the received elements go
  Slice operand;                     // of reduce and complete; as large as recv
  Act act = Act::copy;
  bool operator==(const Step&) const = default;
};

// Elements that this rank copies by itself before the first step, unless both slices are the same
// memory: its own part of an allgather, the root's tensor, and a copy in `scratch` of what would
// otherwise be overwritten while it is sent.
struct LocalCopy {
  Slice from, to;  // of equal size
  bool empty() const { return from.range.empty(); }
  bool operator==(const LocalCopy&) const = default;
};

// One rank's part in a whole operation, step by step.  A message sent in step k is received in
// step k by a rank whose step k names the sender.  A rank begins a step when it is done with the
// one before, so what it sends in a step it may have received in an earlier one.
//
// Every schedule of this folder promises:
//  - All ranks of a group have the same number of steps.
//  - `send` and `recv` of one step do not overlap, and `operand` is `recv` or does not overlap it,
//    also if the operation is in place: `in` is the same memory as `out`, or for allgather as this
//    rank's part of `out`, or for reducescatter `out` is this rank's part of `in`.  Alltoall is
//    never in place: whoever is asked for that copies `in` away first.
//  - Nothing is read from `out` or `scratch` that was not written before, and nothing of `in` that
//    an operation in place has overwritten.
//  - Each element of a reduction is completed exactly once on each rank that does not receive it
//    complete, by the same tree of operations: results have the same bits everywhere.
//  - No rank finishes before every rank has begun the operation: each rank's last message depends,
//    directly or through other ranks, on a message from every rank.
//  - If only some ranks begin the operation, one of them sends a message to one of the others
//    before all wait.  So where ranks begin different operations, one of them receives a message
//    of another operation than its own; no mismatch can end in silence.
//
// Steps are computed when asked for: a schedule costs little to make, whatever the world's size.
class Schedule {
 public:
  virtual ~Schedule() = default;

  virtual int steps() const = 0;
  virtual Step step(int k) const = 0;
  virtual LocalCopy local_copy() const { return {}; }
  virtual std::size_t scratch() const { return 0; }  // elements
};

}  // namespace corro::runtime
