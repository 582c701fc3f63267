#include "base/frame.h"

#include <tuple>

#include "tests/fuzz/fuzz.h"

using namespace corro;

namespace {

constexpr std::size_t kLimit = 40;  // within easy reach of the fuzzer

struct Reading {
  std::vector<std::tuple<std::uint16_t, std::uint64_t, Bytes>> frames;
  std::optional<Error> failure;
  bool between_frames = false;
  bool operator==(const Reading&) const = default;
};

// In pieces of this size; 0: all at once.
Reading read(ByteView stream, std::size_t piece) {
  Reading out;
  FrameReader reader(kLimit);
  if (piece == 0) piece = stream.size();
  while (!stream.empty()) {
    const auto n = std::min(piece, stream.size());
    const auto fed = reader.feed(stream.first(n), [&](const Frame& frame) -> Result<Unit> {
      fuzz::require(frame.body.size() <= kLimit, "no body is over the limit");
      out.frames.emplace_back(frame.kind, frame.seq, Bytes(frame.body.begin(), frame.body.end()));
      return Unit{};
    });
    if (!fed) out.failure = fed.error();
    stream = stream.subspan(n);
  }
  out.between_frames = reader.between_frames();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t piece = 1 + input.byte();
  const ByteView stream = input.rest();
  const Reading whole = read(stream, 0);
  fuzz::require(read(stream, piece) == whole, "pieces make no difference");
  fuzz::require(read(stream, 1) == whole, "single bytes make no difference");

  Bytes again;
  for (const auto& [kind, seq, body] : whole.frames) append_frame(again, {kind, seq, body});
  fuzz::require(
      again.size() <= stream.size() && std::equal(again.begin(), again.end(), stream.begin()),
      "the frames are what was on the stream");
  return 0;
}
