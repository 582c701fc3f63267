#include "runtime/op/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/assert.h"

namespace corro::runtime {

namespace {

template <class Enum>
constexpr std::size_t index_of(Enum value) {
  return static_cast<std::size_t>(value);
}

template <class Enum>
constexpr std::size_t kHowMany = index_of(last_of(Enum{})) + 1;

template <class Enum>
bool known(Enum value) {
  return value <= last_of(value);
}

constexpr std::array<std::string_view, kHowMany<Kind>> kKinds = {
    "allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "barrier"};

struct TypeFacts {
  std::string_view name;
  std::size_t size;
  bool floating;
};
constexpr std::array<TypeFacts, kHowMany<DataType>> kTypes = {{{"u8", 1, false},
                                                               {"i8", 1, false},
                                                               {"u16", 2, false},
                                                               {"i16", 2, false},
                                                               {"u32", 4, false},
                                                               {"i32", 4, false},
                                                               {"u64", 8, false},
                                                               {"i64", 8, false},
                                                               {"f16", 2, true},
                                                               {"bf16", 2, true},
                                                               {"f32", 4, true},
                                                               {"f64", 8, true},
                                                               {"bool", 1, false}}};

constexpr std::array<std::string_view, kHowMany<Reduction>> kReductions = {
    "sum", "average", "min", "max", "product", "bit_and", "bit_or", "adasum"};

const TypeFacts& facts_of(DataType type) {
  CORRO_ASSERT(known(type));
  return kTypes[index_of(type)];
}

bool reduces(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reducescatter;
}
bool has_parts(Kind kind) {
  return kind == Kind::allgather || kind == Kind::reducescatter;
}

// Whether the parts are those that a tensor of this many elements is cut into when nothing else is
// asked for: equal, and the first ones longer by one if it does not divide.
bool even(const std::vector<std::uint64_t>& parts) {
  return std::is_sorted(parts.rbegin(), parts.rend()) &&
         (parts.empty() || parts.front() - parts.back() <= 1);
}

// ", in parts of 3, 5, 9", so that ranks that cut differently see how; a few are enough.
std::string parts_text(const std::vector<std::uint64_t>& parts) {
  constexpr std::size_t kMost = 16;
  if (even(parts)) return "";
  const auto shown = parts.begin() + static_cast<std::ptrdiff_t>(std::min(parts.size(), kMost));
  return fmt::format(", in parts of {}{}", fmt::join(parts.begin(), shown, ", "),
                     parts.size() > kMost ? ", ..." : "");
}

std::string scales_text(const Shape& shape) {
  std::string text;
  if (shape.prescale != 1) text += fmt::format(", prescale {}", shape.prescale);
  if (shape.postscale != 1) text += fmt::format(", postscale {}", shape.postscale);
  return text;
}

// Changes `state` so that, for one and the same state, no two words give the same result.
std::uint64_t mixed(std::uint64_t state, std::uint64_t word) {
  state = (state ^ word) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 29)) * 0x94d049bb133111eb;
  return state ^ (state >> 32);
}

// Nothing if it is larger than what memory can hold.
std::optional<std::uint64_t> sum_of(const std::vector<std::uint64_t>& counts) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts)
    if (__builtin_add_overflow(sum, count, &sum)) return std::nullopt;
  return sum;
}

bool fits_in_memory(std::optional<std::uint64_t> count, DataType type) {
  return count && *count <= static_cast<std::uint64_t>(PTRDIFF_MAX) / size_of(type);
}

using Refusal = std::optional<std::string>;

Refusal unknown_values(const Shape& shape) {
  if (!known(shape.kind)) return fmt::format("unknown kind of operation {}", index_of(shape.kind));
  if (!known(shape.type)) return fmt::format("unknown data type {}", index_of(shape.type));
  if (!known(shape.reduction))
    return fmt::format("unknown reduction {}", index_of(shape.reduction));
  return std::nullopt;
}

Refusal wrong_reduction(const Shape& shape) {
  const bool floating = facts_of(shape.type).floating;
  switch (shape.reduction) {
    case Reduction::average:
      if (shape.type == DataType::boolean) return "bool has no average";
      break;
    case Reduction::bit_and:
    case Reduction::bit_or:
      if (floating)
        return fmt::format("{} is for integers and bool, not for {}", name_of(shape.reduction),
                           name_of(shape.type));
      break;
    case Reduction::adasum:
      if (!floating)
        return fmt::format("adasum is for floating-point types, not for {}", name_of(shape.type));
      if (shape.kind != Kind::allreduce) return "adasum is for allreduce only";
      break;
    case Reduction::sum:
    case Reduction::min:
    case Reduction::max:
    case Reduction::product:
      break;
  }
  return std::nullopt;
}

Refusal wrong_scale(const Shape& shape) {
  for (const auto& [name, scale] :
       {std::pair("prescale", shape.prescale), std::pair("postscale", shape.postscale)}) {
    if (scale == 1) continue;
    if (scale != scale) return fmt::format("{} is not a number", name);
    if (!reduces(shape.kind)) return fmt::format("{} takes no {}", name_of(shape.kind), name);
    if (shape.type == DataType::boolean) return fmt::format("bool takes no {}", name);
  }
  return std::nullopt;
}

Refusal wrong_parts(const Shape& shape, int ranks) {
  if (!has_parts(shape.kind)) {
    if (!shape.parts.empty()) return fmt::format("{} takes no parts", name_of(shape.kind));
    return std::nullopt;
  }
  if (shape.parts.size() != static_cast<std::size_t>(ranks))
    return fmt::format("{} parts for {} ranks", shape.parts.size(), ranks);
  const auto sum = sum_of(shape.parts);
  if (!sum) return "the parts are too large for memory";
  if (*sum != shape.count)
    return fmt::format("the parts add up to {} elements, not to {}", *sum, shape.count);
  return std::nullopt;
}

Refusal wrong_splits(const Operation& op, int rank, int ranks) {
  for (const auto& [name, counts] :
       {std::pair("sends", &op.sends), std::pair("receives", &op.receives)}) {
    if (op.shape.kind != Kind::alltoall) {
      if (!counts->empty()) return fmt::format("{} takes no {}", name_of(op.shape.kind), name);
      continue;
    }
    if (counts->size() != static_cast<std::size_t>(ranks))
      return fmt::format("{} {} for {} ranks", counts->size(), name, ranks);
    if (!fits_in_memory(sum_of(*counts), op.shape.type))
      return fmt::format("the {} are too large for memory", name);
  }
  if (op.shape.kind != Kind::alltoall) return std::nullopt;
  const auto own = static_cast<std::size_t>(rank);
  if (op.sends[own] != op.receives[own])
    return fmt::format("rank {} sends itself {} elements and receives {}", rank, op.sends[own],
                       op.receives[own]);
  return std::nullopt;
}

Refusal wrong_count(const Shape& shape) {
  if ((shape.kind == Kind::alltoall || shape.kind == Kind::barrier) && shape.count != 0)
    return fmt::format("{} takes no count", name_of(shape.kind));
  if (!fits_in_memory(shape.count, shape.type))
    return fmt::format("{} elements are too many for memory", shape.count);
  return std::nullopt;
}

Refusal wrong_root(const Shape& shape, int ranks) {
  if (shape.kind != Kind::broadcast || (shape.root >= 0 && shape.root < ranks)) return std::nullopt;
  return fmt::format("root {} is not a rank of a group of {}", shape.root, ranks);
}

Refusal wrong_buffers(const Operation& op, const Buffers& buffers, int rank) {
  const Shape& shape = op.shape;
  const std::size_t in = op.in_bytes(rank), out = op.out_bytes(rank);
  // A rank that is not the root may pass the buffer that is to be filled as its input too.
  const bool ignored = shape.kind == Kind::broadcast && rank != shape.root;
  if (buffers.in.size() != in && !(ignored && buffers.in.size() == out))
    return fmt::format("the input has {} bytes instead of {}", buffers.in.size(), in);
  if (buffers.out.size() != out)
    return fmt::format("the output has {} bytes instead of {}", buffers.out.size(), out);
  const auto cut = [&](const auto& piece) { return piece.size() % size_of(shape.type) != 0; };
  if (std::ranges::any_of(buffers.in.pieces(), cut) ||
      std::ranges::any_of(buffers.out.pieces(), cut))
    return "a piece of a buffer ends in the middle of an element";
  return std::nullopt;
}

// Whether two pieces share some bytes, and yet are not the same bytes.
bool overlap_in_part(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  if (a.data() == b.data() && a.size() == b.size()) return false;
  const std::less<const std::uint8_t*> before;
  return before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

// Only where both lie in one piece, which is where it happens by mistake.
Refusal wrong_overlap(const Operation& op, const Buffers& buffers) {
  if (op.shape.kind != Kind::allreduce && op.shape.kind != Kind::broadcast) return std::nullopt;
  if (!buffers.in.contiguous() || !buffers.out.contiguous()) return std::nullopt;
  if (buffers.in.size() == 0 || buffers.out.size() == 0) return std::nullopt;
  if (!overlap_in_part(buffers.in.pieces()[0], buffers.out.pieces()[0])) return std::nullopt;
  return "the input overlaps the output and is not the same";
}

std::size_t bytes_of(const std::vector<std::uint64_t>& counts, DataType type) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) * size_of(type);
}

}  // namespace

std::string_view name_of(Kind kind) {
  CORRO_ASSERT(known(kind));
  return kKinds[index_of(kind)];
}

std::size_t size_of(DataType type) {
  return facts_of(type).size;
}

std::string_view name_of(DataType type) {
  return facts_of(type).name;
}

std::string_view name_of(Reduction reduction) {
  CORRO_ASSERT(known(reduction));
  return kReductions[index_of(reduction)];
}

std::string Shape::text() const {
  const std::string elements = fmt::format("{} {}", count, name_of(type));
  switch (kind) {
    case Kind::allreduce:
    case Kind::reducescatter:
      return fmt::format("{}({} of {}{}{})", name_of(kind), name_of(reduction), elements,
                         parts_text(parts), scales_text(*this));
    case Kind::allgather:
      return fmt::format("allgather({}{})", elements, parts_text(parts));
    case Kind::broadcast:
      return fmt::format("broadcast({} from rank {})", elements, root);
    case Kind::alltoall:
      return fmt::format("alltoall({})", name_of(type));
    case Kind::barrier:
      break;
  }
  return "barrier()";
}

std::uint64_t digest(const Shape& shape) {
  // -0.0 equals 0.0, so both are mixed as 0.0.
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x + 0.0); };
  std::uint64_t state = 0x51ed270b9f652295;
  state = mixed(state, index_of(shape.kind) | index_of(shape.type) << 8 |
                           index_of(shape.reduction) << 16 |
                           std::uint64_t{static_cast<std::uint32_t>(shape.root)} << 32);
  state = mixed(state, shape.count);
  state = mixed(state, bits(shape.prescale));
  state = mixed(state, bits(shape.postscale));
  if (!shape.parts.empty()) state = mixed(state, shape.parts.size());
  for (const std::uint64_t part : shape.parts) state = mixed(state, part);
  return state;
}

std::size_t Operation::in_bytes(int rank) const {
  const std::size_t whole = shape.count * size_of(shape.type);
  switch (shape.kind) {
    case Kind::allreduce:
    case Kind::reducescatter:
      return whole;
    case Kind::broadcast:
      return rank == shape.root ? whole : 0;
    case Kind::allgather:
      return shape.parts[static_cast<std::size_t>(rank)] * size_of(shape.type);
    case Kind::alltoall:
      return bytes_of(sends, shape.type);
    case Kind::barrier:
      break;
  }
  return 0;
}

std::size_t Operation::out_bytes(int rank) const {
  const std::size_t whole = shape.count * size_of(shape.type);
  switch (shape.kind) {
    case Kind::allreduce:
    case Kind::broadcast:
    case Kind::allgather:
      return whole;
    case Kind::reducescatter:
      return shape.parts[static_cast<std::size_t>(rank)] * size_of(shape.type);
    case Kind::alltoall:
      return bytes_of(receives, shape.type);
    case Kind::barrier:
      break;
  }
  return 0;
}

std::optional<std::string> invalid(const Operation& op, const Buffers& buffers, int rank,
                                   int ranks) {
  CORRO_ASSERT(rank >= 0 && rank < ranks);
  const Shape& shape = op.shape;
  if (auto why = unknown_values(shape)) return why;
  if (auto why = wrong_count(shape)) return why;
  if (reduces(shape.kind))
    if (auto why = wrong_reduction(shape)) return why;
  if (auto why = wrong_scale(shape)) return why;
  if (auto why = wrong_root(shape, ranks)) return why;
  if (auto why = wrong_parts(shape, ranks)) return why;
  if (auto why = wrong_splits(op, rank, ranks)) return why;
  if (auto why = wrong_buffers(op, buffers, rank)) return why;
  return wrong_overlap(op, buffers);
}

}  // namespace corro::runtime
