#include "base/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/codec.h"

namespace corro {

namespace {

constexpr std::size_t kAfterLength = kFrameHeaderBytes - kFrameLengthBytes;

Frame parse(ByteView whole) {
  Frame frame;
  frame.kind = load_little<std::uint16_t>(whole.data() + 4);
  frame.seq = load_little<std::uint64_t>(whole.data() + 6);
  frame.body = whole.subspan(kFrameHeaderBytes);
  return frame;
}

}  // namespace

void append_frame(Bytes& to, const Frame& frame) {
  CORRO_ASSERT(frame.body.size() <= std::numeric_limits<std::uint32_t>::max() - kAfterLength);
  store_little(to, static_cast<std::uint32_t>(kAfterLength + frame.body.size()));
  store_little(to, frame.kind);
  store_little(to, frame.seq);
  append(to, frame.body);
}

Result<std::size_t> FrameReader::frame_bytes(ByteView front) const {
  if (front.size() < kFrameLengthBytes) return std::size_t{0};
  const std::size_t length = load_little<std::uint32_t>(front.data());
  if (length < kAfterLength)
    return Error(Errc::malformed, fmt::format("a frame of {} bytes is too short", length));
  if (length - kAfterLength > body_limit_)
    return Error(Errc::too_large, fmt::format("a frame of {} bytes is over the limit of {}",
                                              length - kAfterLength, body_limit_));
  return kFrameLengthBytes + length;
}

Result<Unit> FrameReader::feed(ByteView bytes,
                               const std::function<Result<Unit>(const Frame&)>& on_frame) {
  if (failure_) return *failure_;
  auto taken = cut(bytes, on_frame);
  if (!taken) failure_ = taken.error();
  return taken;
}

Result<Unit> FrameReader::cut(ByteView bytes,
                              const std::function<Result<Unit>(const Frame&)>& on_frame) {
  while (!bytes.empty() || !partial_.empty()) {
    // Whole frames are handed over where they lie; only the ends of reads are copied.
    const ByteView front = partial_.empty() ? bytes : ByteView(partial_);
    const auto size = frame_bytes(front);
    if (!size) return size.error();
    const bool whole = *size > 0 && front.size() >= *size;

    if (whole && partial_.empty()) {
      if (auto taken = on_frame(parse(front.first(*size))); !taken) return taken;
      bytes = bytes.subspan(*size);
    } else if (whole) {
      const Bytes frame = std::exchange(partial_, {});
      if (auto taken = on_frame(parse(frame)); !taken) return taken;
    } else {
      if (bytes.empty()) return Unit{};
      const std::size_t missing = (*size > 0 ? *size : kFrameLengthBytes) - partial_.size();
      const auto taken = bytes.first(std::min(missing, bytes.size()));
      append(partial_, taken);
      bytes = bytes.subspan(taken.size());
    }
  }
  return Unit{};
}

}  // namespace corro
