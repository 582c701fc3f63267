#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"

namespace corro {

//   frame := length:u32 kind:u16 seq:u64 body:byte[length - 10]      ; little-endian
//
// The kind names the message in the body.  The sequence number counts the frames of one
// direction from 1, so that a receiver can say up to where it has taken them.
struct Frame {
  std::uint16_t kind = 0;
  std::uint64_t seq = 0;
  ByteView body;  // valid during the call that hands it over
};

inline constexpr std::size_t kFrameLengthBytes = 4;
inline constexpr std::size_t kFrameHeaderBytes = 14;  // with the length

void append_frame(Bytes& to, const Frame&);

// Cuts a stream of bytes into frames.  A length beyond the limit is refused as soon as it is
// read: nothing is allocated for what has only been announced.
class FrameReader {
 public:
  explicit FrameReader(std::size_t body_limit) : body_limit_(body_limit) {}

  // Once it has failed it stays failed, with the same error: what follows on the stream has no
  // meaning.
  Result<Unit> feed(ByteView, const std::function<Result<Unit>(const Frame&)>& on_frame);

  // Whether the stream may end here, between two frames.
  bool between_frames() const { return partial_.empty() && !failure_; }

 private:
  Result<Unit> cut(ByteView, const std::function<Result<Unit>(const Frame&)>& on_frame);

  // How many bytes the frame at the front takes; 0 while that cannot be known.
  Result<std::size_t> frame_bytes(ByteView front) const;

  std::size_t body_limit_;
  Bytes partial_;
  std::optional<Error> failure_;
};

}  // namespace corro
