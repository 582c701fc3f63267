#include "launcher/pipe/bootstrap.h"

#include "launcher/pipe/copy.h"
#include "tests/fuzz/fuzz.h"

using namespace corro;
using namespace corro::launcher;

namespace {

// Where it came to, and what was left of the stream then.
struct Hearing {
  std::size_t step = 0;
  Bytes frames;
  bool operator==(const Hearing&) const = default;
};

Hearing hear(ByteView stream, std::size_t piece) {
  Bootstrap talk("corro-0", {"/p", "id", 1, 2});
  while (!stream.empty()) {
    const auto n = std::min(piece, stream.size());
    auto step = talk.hear(stream.first(n));
    stream = stream.subspan(n);
    if (std::holds_alternative<Bootstrap::Listen>(step)) continue;
    Hearing out{step.index(), {}};
    if (auto* frames = std::get_if<Bootstrap::Frames>(&step)) out.frames = std::move(frames->first);
    if (step.index() == Bootstrap::Step(Bootstrap::Frames{}).index()) append(out.frames, stream);
    return out;
  }
  fuzz::require(!talk.explain_end(1, "GLIBC").why.empty(), "every end is explained");
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t piece = 1 + input.byte();
  const ByteView stream = input.rest();
  const auto whole = fuzz::in_time([&] { return hear(stream, stream.size() + 1); });
  fuzz::require(hear(stream, piece) == whole, "pieces make no difference");
  if (const auto up = whole_frames(stream))
    fuzz::require(*up <= stream.size(), "no frame is longer");
  misfit({"x", std::string(text_of(stream))}, "x", stream);
  return 0;
}
