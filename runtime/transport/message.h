#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/codec.h"

// What ranks say to each other on a link; PROTOCOL.md has the bytes.
namespace corro::runtime {

enum class DataType : std::uint8_t { f32, f64 };
enum class Reduction : std::uint8_t { sum, average, min, max };
enum class Collective : std::uint8_t { allreduce, broadcast, barrier };

constexpr DataType last_of(DataType) {
  return DataType::f64;
}
constexpr Reduction last_of(Reduction) {
  return Reduction::max;
}
constexpr Collective last_of(Collective) {
  return Collective::barrier;
}

constexpr std::size_t size_of(DataType type) {
  return type == DataType::f32 ? 4 : 8;
}

// What a rank was asked to do.  It travels in every message, so that two ranks whose programs
// have gone different ways find out at their first exchange.
struct Operation {
  Collective collective = Collective::barrier;
  DataType type = DataType::f32;
  Reduction reduction = Reduction::sum;  // of an allreduce
  std::int32_t root = 0;                 // of a broadcast
  std::uint64_t count = 0;               // elements

  std::size_t bytes() const { return count * size_of(type); }

  // "allreduce(average of 1000 f32)", "broadcast(1000 f64 from rank 0)", "barrier()"
  std::string text() const;

  CORRO_FIELDS(collective, type, reduction, root, count)
  bool operator==(const Operation&) const = default;
};

// In front of every message.
struct Header {
  enum class Kind : std::uint8_t { data, abort };

  Kind kind = Kind::data;
  std::uint64_t generation = 0;
  std::uint64_t sequence = 0;  // of the operation, counted from 1
  std::uint32_t step = 0;
  Operation operation;
  std::uint64_t bytes = 0;  // of the body that follows

  CORRO_FIELDS(kind, generation, sequence, step, operation, bytes)
  bool operator==(const Header&) const = default;
};
constexpr Header::Kind last_of(Header::Kind) {
  return Header::Kind::abort;
}

inline constexpr std::size_t kHeaderBytes = 44;
inline constexpr std::size_t kAbortLimit = 4096;  // bytes of an abort's body

// One side of a link.
struct Peer {
  int rank = 0;
  std::string host;

  std::string text() const;  // "rank 2 on host b"
  bool operator==(const Peer&) const = default;
};

// What is wrong when `came` arrives from `peer` where `mine` says `wanted`.
std::optional<std::string> mismatch(const Header& wanted, const Peer& mine, const Header& came,
                                    const Peer& peer);

}  // namespace corro::runtime
