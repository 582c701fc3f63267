#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/op/op.h"

namespace corro::runtime {

// Limits that all members of a domain agree on.
struct Tuning {
  std::size_t slot_bytes = 0;    // of each half of the inputs; a multiple of 64
  std::size_t whole_bytes = 0;   // up to here every rank reduces everything, in one round
  std::size_t direct_bytes = 0;  // from here buffers in the arena are used where they are

  bool operator==(const Tuning&) const = default;
};

// Figures from measurement, for so many members on so many processors.
Tuning tuning_for(int members, double processors, std::size_t slot_bytes);

// Who stages, reduces and copies which bytes in which chunk of an operation.  Pure: every member
// computes the same from the shape, so nothing of it is exchanged.
//
// A chunk is what moves in one round.  In each chunk a member stages ranges of its `in` at places
// in its slot; no range is split inside an element, since all places and widths are multiples of
// 64 bytes.
//
//   allreduce      whole: everyone stages all and reduces all.  Else chunk c is cut into a slice
//                  for each member; each stages the others' slices, reduces its own, and hands the
//                  result on while chunk c + 1 is reduced: one round more than chunks
//   reducescatter  whole: everyone stages all and reduces its part.  Else a chunk has a slice of
//                  every part, as wide in proportion to the part, so that all parts end together
//   allgather      slices of each member's own part
//   broadcast      slices of the root's tensor
//   alltoall       a slice for each pair; how many chunks is known when the counts have come
//   barrier        one chunk of nothing
class Plan {
 public:
  Plan() = default;
  Plan(const Shape&, int members, const Tuning&);

  // Everything is in the post itself, or at the beginning of the slot, in one round.
  bool whole() const { return whole_; }
  bool in_post() const { return in_post_; }

  std::uint64_t chunks() const { return chunks_; }
  std::uint64_t rounds() const { return chunks_ + (hands_results_on_ ? 1 : 0); }

  std::size_t total() const { return total_; }  // bytes of the whole tensor, or of all parts
  std::size_t unit() const { return unit_; }    // bytes of an element

  // Of reducescatter and allgather: where a member's part lies in the tensor.
  Range part(int member) const;

  // The bytes of the tensor that a member reduces (allreduce, reducescatter), contributes
  // (allgather) or, as the root, sends (broadcast, any member) in a chunk.
  Range slice(std::uint64_t chunk, int member) const;

  // Where a member's slice begins in every other member's slot.
  std::size_t place(int member) const;

  // An even cut of the tensor for members that work on buffers where they are.
  Range share(int member) const;

 private:
  void cut_allreduce(const Tuning&);
  void cut_parts(const Tuning&);
  void cut_stream(std::size_t longest, std::size_t slot);

  Kind kind_ = Kind::barrier;
  std::size_t members_ = 1, unit_ = 1, total_ = 0;
  bool whole_ = true, in_post_ = true, hands_results_on_ = false;
  std::uint64_t chunks_ = 1;
  std::size_t width_ = 0, last_width_ = 0;  // of a slice, and of one in the last chunk
  std::vector<std::size_t> begins_;         // of parts, with the end of the last
  std::vector<std::size_t> widths_, places_;
};

// How an all-to-all uses a slot: the counts of both directions first, then one place per pair.
struct PairSlots {
  std::size_t counts_bytes = 0, width = 0;

  static PairSlots of(int members, std::size_t slot_bytes);

  std::size_t place(int member) const {
    return counts_bytes + static_cast<std::size_t>(member) * width;
  }
  std::uint64_t chunks(std::size_t longest_bytes) const;
  Range slice(std::uint64_t chunk, std::size_t bytes) const;
};

}  // namespace corro::runtime
