#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/codec.h"
#include "runtime/op/failure.h"

// What ranks say to each other on a link; PROTOCOL.md has the bytes.
namespace corro::runtime {

// Which message of which operation.  A link compares tags and does not interpret them.
struct Tag {
  std::uint64_t generation = 0;
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;  // of the operation in its group, counted from 1
  std::uint32_t step = 0;

  CORRO_FIELDS(generation, group, sequence, step)
  bool operator==(const Tag&) const = default;
};

// In front of every message.
struct Header {
  enum class Kind : std::uint8_t { data, abort };

  Kind kind = Kind::data;
  Tag tag;
  std::uint64_t digest = 0;             // of the operation's shape
  std::uint16_t description_bytes = 0;  // of the text that follows; once per operation and link
  std::uint64_t bytes = 0;              // of the body that follows that

  CORRO_FIELDS(kind, tag, digest, description_bytes, bytes)
  bool operator==(const Header&) const = default;
};
constexpr Header::Kind last_of(Header::Kind) {
  return Header::Kind::abort;
}

inline constexpr std::size_t kHeaderBytes = 47;
inline constexpr std::size_t kDescriptionLimit = 200;  // bytes; a longer text is cut
inline constexpr std::size_t kAbortLimit = 4096;       // bytes of an abort's body

// What a rank expects to arrive, and how it describes its own operation if something else does.
struct Expected {
  Header header;
  std::string_view description;
};

// What is wrong when `came`, described as `description`, arrives from `peer` where `self` expects
// something else.
std::optional<Failure> mismatch(const Peer& self, const Expected& expected, const Peer& peer,
                                const Header& came, std::string_view description);

}  // namespace corro::runtime
