#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/op/pieces.h"

// What an operation is: values that every layer above shares, with no idea of transports.
namespace corro::runtime {

enum class Kind : std::uint8_t {
  allreduce,
  allgather,
  broadcast,
  alltoall,
  reducescatter,
  barrier,
};
constexpr Kind last_of(Kind) {
  return Kind::barrier;
}
std::string_view name_of(Kind);

enum class DataType : std::uint8_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f16,
  bf16,
  f32,
  f64,
  boolean,  // one byte: 0 is false, anything else is true; results are 0 or 1
};
constexpr DataType last_of(DataType) {
  return DataType::boolean;
}
std::size_t size_of(DataType);
std::string_view name_of(DataType);  // "f32", "bool"

// An average is a sum that is divided once by the number of ranks; integers divide exactly,
// toward zero.  On bool, sum is or, product is and, average is refused.  bit_and and bit_or are
// for integers and bool.  Adasum is for floating-point types.
enum class Reduction : std::uint8_t { sum, average, min, max, product, bit_and, bit_or, adasum };
constexpr Reduction last_of(Reduction) {
  return Reduction::adasum;
}
std::string_view name_of(Reduction);

// What all ranks of a group must agree on before a byte is reduced.
struct Shape {
  Kind kind = Kind::barrier;
  DataType type = DataType::u8;
  Reduction reduction = Reduction::sum;  // of allreduce and reducescatter
  std::int32_t root = 0;                 // of broadcast: a rank of the group
  // Elements: of the tensor for allreduce and broadcast; of all parts together for allgather and
  // reducescatter; 0 for alltoall (each rank has its own) and barrier.
  std::uint64_t count = 0;
  // Elements of each rank's part, for allgather and reducescatter.
  std::vector<std::uint64_t> parts;
  double prescale = 1, postscale = 1;  // of allreduce and reducescatter

  bool operator==(const Shape&) const = default;

  // "allreduce(average of 1000 f32)", "broadcast(1000 f64 from rank 0)", "barrier()"
  std::string text() const;
};

// Equal for equal shapes; ranks compare it before they exchange data.  Cheap enough to be
// computed for every operation of a few bytes.
std::uint64_t digest(const Shape&);

// One rank's view of an operation: the shape, and for alltoall how many elements this rank sends
// to and receives from each rank.
struct Operation {
  Shape shape;
  std::vector<std::uint64_t> sends, receives;  // alltoall only: one for each rank

  // Bytes that `in` and `out` must have on this rank.
  std::size_t in_bytes(int rank) const;
  std::size_t out_bytes(int rank) const;
};

// Where the data is.  The pieces of `in` may be those of `out` (in place) or not overlap them at
// all.  For a broadcast only the root's `in` is read; a rank that is not the root may leave it
// empty.
struct Buffers {
  Pieces in;
  MutPieces out;
};

// Why this rank alone can say that the operation cannot be done: a type that a reduction does not
// take, a root outside of the group, parts that do not add up, buffers of the wrong size.
std::optional<std::string> invalid(const Operation&, const Buffers&, int rank, int ranks);

}  // namespace corro::runtime
