#include "base/codec.h"

#include "launcher/agent/protocol.h"
#include "rendezvous/messages.h"
#include "tests/fuzz/fuzz.h"

using namespace corro;
using namespace corro::launcher;
using namespace corro::rendezvous;

namespace {

template <class Protocol>
void decode_and_encode(const Frame& frame) {
  const auto message = decode_frame<Protocol>(frame);
  if (!message) return;
  const Bytes again = encode_frame(*message, frame.seq);
  Bytes expected;
  append_frame(expected, frame);
  fuzz::require(again == expected, "what was decoded encodes to the same bytes");
}

}  // namespace

// The first byte says the kind; kinds of all protocols are below 256.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Frame frame;
  frame.kind = input.byte();
  frame.seq = 1;
  frame.body = input.rest();
  decode_and_encode<store::Request>(frame);
  decode_and_encode<store::Reply>(frame);
  decode_and_encode<agent::Down>(frame);
  decode_and_encode<agent::Up>(frame);
  return 0;
}
