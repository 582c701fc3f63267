#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

// The memory of one member, as all members of a domain see it.  Its owner writes it; the others
// read it.
//
//   Control     one page: what the member is, its two posts, its bell, what it does in words
//   inputs[2]   slot_bytes each: what the others reduce or copy
//   results[2]  result_bytes each: what this member has reduced for the others
//
// All data moves in rounds.  In round r each member writes into the half with r's parity, posts
// r, waits until all have posted r, and reads the others' halves.  The rules that keep a half
// from being written while it is read:
//
//   inputs[r & 1], posts[r & 1]   are written before r is posted, and read by the others after
//                                 they have seen r and before they post r + 1
//   results[r & 1]                are written after all have posted r and before r + 1 is
//                                 posted, and read after r + 1 was seen and before r + 2 is posted
//
// A member writes inputs[r & 1] again for round r + 2, after all have posted r + 1; so all reads
// of round r are over.  It writes results[r & 1] again after all have posted r + 2; so are they.
// A member is therefore never more than one round ahead, and no second wait is needed.
namespace corro::runtime {

// Two lines: x86 fetches lines in pairs, so that what lies in the same pair comes together.
inline constexpr std::size_t kLinePair = 128;
inline constexpr std::size_t kControlBytes = 4096;
inline constexpr std::size_t kDescriptionBytes = 200;

using RoundNumber = std::atomic<std::uint64_t>;
using Flag = std::atomic<std::uint32_t>;

// They are shared between processes, so they may not hide a lock.
static_assert(RoundNumber::is_always_lock_free && sizeof(RoundNumber) == 8);
static_assert(Flag::is_always_lock_free && sizeof(Flag) == 4);

// Processors that a member may run on, for the decision how to wait (waiting.h).
struct CpuClaim {
  std::array<std::uint64_t, 16> mask{};  // affinity, one bit for each of 1,024 processors
  std::uint64_t quota_thousandths = 0;   // of a processor, for the whole control group; 0: no limit

  bool operator==(const CpuClaim&) const = default;
};

// Written before the memory is offered to anyone, and constant from then on.
struct SegmentHeader {
  static constexpr std::uint64_t kMagic = 0x31'6e69616d6f44'43;  // "CDomain1"

  std::uint64_t magic = kMagic;
  std::uint64_t bytes = 0;  // of the whole segment
  std::uint64_t slot_bytes = 0, result_bytes = 0;
  CpuClaim cpus;
};

// What a member says in one round.  A tensor of a few bytes travels in the post itself: whoever
// sees the sequence number has the data in the same line.
struct alignas(kLinePair) Post {
  // The round that this post belongs to; 0 before the first.  Stored with release and loaded with
  // acquire, which order the data of the round.  Bell says what else is needed.
  RoundNumber sequence{0};
  std::uint64_t digest = 0;  // of the Shape; valid in the first round of an operation
  std::array<std::uint8_t, kLinePair - 16> data{};
};
inline constexpr std::size_t kInlineBytes = sizeof(Post::data);

// A line of its own: it changes only when the owner goes to sleep or wakes, so it stays in
// everyone's cache, and to look at it after each post costs nothing.
struct alignas(kLinePair) Bell {
  // 0: the owner is awake.  i + 1: it sleeps, and member i is to ring its doorbell after its next
  // post.
  //
  // The owner stores i + 1 here and then loads i's sequence; member i stores its sequence and then
  // loads this.  If both loads could be served before the stores are visible (as store buffers
  // allow, on x86 too), the owner would sleep and nobody ring.  A full fence on both sides forbids
  // it: whichever is second, the load after it sees the store before the first.
  // tests/unit/runtime/domain/doorbell_model_test.cc shows that less is not enough.
  Flag awaited{0};
};

// What the member believes that it is doing, for the report of a mismatch.  Written before the
// first round of an operation is posted, when the shape differs from the last one's.  It needs no
// second half: others read it only after a mismatch, and a mismatch ends the domain on all
// members, so that it is not written again.
struct alignas(kLinePair) Description {
  std::uint32_t bytes = 0;
  std::array<char, kDescriptionBytes> text{};

  void set(std::string_view words) {
    const std::size_t n = std::min(words.size(), text.size());
    std::memcpy(text.data(), words.data(), n);
    bytes = static_cast<std::uint32_t>(n);
  }
  // Another process may have written anything.
  std::string_view get() const { return {text.data(), std::min<std::size_t>(bytes, text.size())}; }
};

// Why the member has given up, for the others.  Written once.
struct alignas(kLinePair) Abandoned {
  // 1: it has failed; 2: it has closed, having done its part of what it began.  Then the rest is
  // there.
  Flag flag{0};
  std::uint32_t code = 0;
  std::int32_t rank = -1;
  Description text;
};

struct Control {
  SegmentHeader header;
  std::array<Post, 2> posts;
  Bell bell;
  Description description;
  Abandoned abandoned;
};
static_assert(sizeof(Control) <= kControlBytes);

// Where the parts of a segment begin.  A segment's sizes are the owner's choice; what a domain
// uses of them is the smallest of all members'.
struct Layout {
  std::size_t slot_bytes = 0, result_bytes = 0;  // multiples of kLinePair

  constexpr std::size_t input(unsigned parity) const { return kControlBytes + parity * slot_bytes; }
  constexpr std::size_t result(unsigned parity) const {
    return kControlBytes + 2 * slot_bytes + parity * result_bytes;
  }
  constexpr std::size_t bytes() const { return result(2); }
};

// A chunk of an allreduce is `slot_bytes` long on every rank and cut into one slice per rank, so
// the results of one rank take about slot_bytes / ranks.
Layout layout_for(int ranks, std::size_t slot_bytes);

std::size_t default_slot_bytes(int ranks);

}  // namespace corro::runtime
