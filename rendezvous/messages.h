#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"

// What store and clients say to each other; PROTOCOL.md has the bytes.
namespace corro::rendezvous {

// The end of a worker, as everybody else learns of it.
struct Departure {
  enum class Manner { left, died };  // with exit code 0, or in any other way

  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  std::string host;
  std::string cause;  // "was killed by SIGKILL", "exited with code 3"
  Manner manner = Manner::died;

  // "rank 2 on host b was killed by SIGKILL"
  std::string text() const;

  CORRO_FIELDS(generation, rank, host, cause, manner)
  bool operator==(const Departure&) const = default;
};
constexpr Departure::Manner last_of(Departure::Manner) {
  return Departure::Manner::died;
}

namespace store {

// A client numbers its requests; the answer has the same number.
struct Set {
  static constexpr std::uint16_t kKind = 1;
  std::uint64_t id = 0;
  std::string key;
  Bytes value;
  CORRO_FIELDS(id, key, value)
  bool operator==(const Set&) const = default;
};

struct WaitFor {
  static constexpr std::uint16_t kKind = 2;
  std::uint64_t id = 0;
  std::string key;
  std::uint32_t within_ms = 0;
  CORRO_FIELDS(id, key, within_ms)
  bool operator==(const WaitFor&) const = default;
};

// All `size` ranks give a value under one key and each gets all of them, in rank order.  If one of
// them has departed in that generation and left none, nobody needs to wait for it.
struct Gather {
  static constexpr std::uint16_t kKind = 3;
  std::uint64_t id = 0;
  std::string key;
  std::uint32_t rank = 0, size = 0;
  Bytes value;
  std::uint32_t within_ms = 0;
  std::uint64_t generation = 0;
  CORRO_FIELDS(id, key, rank, size, value, within_ms, generation)
  bool operator==(const Gather&) const = default;
};

using Request = std::variant<Set, WaitFor, Gather>;

struct Done {
  static constexpr std::uint16_t kKind = 65;
  std::uint64_t id = 0;
  CORRO_FIELDS(id)
  bool operator==(const Done&) const = default;
};

struct Value {
  static constexpr std::uint16_t kKind = 66;
  std::uint64_t id = 0;
  Bytes value;
  CORRO_FIELDS(id, value)
  bool operator==(const Value&) const = default;
};

struct Values {
  static constexpr std::uint16_t kKind = 67;
  std::uint64_t id = 0;
  std::vector<Bytes> values;
  CORRO_FIELDS(id, values)
  bool operator==(const Values&) const = default;
};

struct Refused {
  static constexpr std::uint16_t kKind = 68;
  std::uint64_t id = 0;
  Errc code = Errc::io;
  std::string text;
  CORRO_FIELDS(id, code, text)
  bool operator==(const Refused&) const = default;
};

// Unasked: somebody is gone.  A client that joins late is told of all who went before.
struct Notice {
  static constexpr std::uint16_t kKind = 69;
  Departure departure;
  CORRO_FIELDS(departure)
  bool operator==(const Notice&) const = default;
};

using Reply = std::variant<Done, Value, Values, Refused, Notice>;

inline constexpr std::string_view kPurpose = "store";
inline constexpr std::size_t kKeyLimit = 256;
inline constexpr std::size_t kValueLimit = 1 << 20;
inline constexpr std::size_t kTotalLimit = 256 << 20;  // all that is stored, with its keys
inline constexpr std::size_t kEntryBytes = 128;        // what an entry costs besides
inline constexpr std::size_t kHeldLimit = 64;          // requests of one client that wait
inline constexpr std::uint32_t kRankLimit = 1 << 20;
inline constexpr std::size_t kRequestLimit = kValueLimit + 4096;  // a frame to the server
inline constexpr std::size_t kReplyLimit = kTotalLimit + 4096;    // a frame to a client

// Why a key and its value cannot be stored, if so.
std::optional<Error> unfit(std::string_view key, ByteView value);

}  // namespace store
}  // namespace corro::rendezvous
