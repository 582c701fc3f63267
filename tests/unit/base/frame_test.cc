#include "base/frame.h"

#include <rapidcheck/catch.h>

#include <tuple>

#include "allocations.h"
#include "base/codec.h"
#include "tests/support/print_error.h"

namespace corro {

namespace {

using Content = std::tuple<std::uint16_t, std::uint64_t, Bytes>;  // kind, seq, body
using Contents = std::vector<Content>;

constexpr std::size_t kLimit = 1000;

Bytes stream_of(const Contents& contents) {
  Bytes stream;
  for (const auto& [kind, seq, body] : contents) append_frame(stream, {kind, seq, body});
  return stream;
}

Bytes announcing(std::uint32_t length) {
  Bytes bytes;
  store_little(bytes, length);
  return bytes;
}

// A reader that keeps what it reads.
struct Reading {
  FrameReader reader{kLimit};
  Contents frames;

  Result<Unit> feed(ByteView bytes) {
    return reader.feed(bytes, [this](const Frame& frame) -> Result<Unit> {
      frames.emplace_back(frame.kind, frame.seq, Bytes(frame.body.begin(), frame.body.end()));
      return Unit{};
    });
  }
};

}  // namespace

TEST_CASE("a frame is its length, kind, number and body, little-endian") {
  const Bytes body = {0xAA, 0xBB};
  Bytes bytes;
  append_frame(bytes, {0x0102, 0x030405, body});
  CHECK(bytes == Bytes{12, 0, 0, 0, 0x02, 0x01, 0x05, 0x04, 0x03, 0, 0, 0, 0, 0, 0xAA, 0xBB});
}

TEST_CASE("however a stream is cut into pieces, the frames are the same") {
  rc::prop("for every stream and every way to cut it", [](const Contents& sent) {
    const Bytes stream = stream_of(sent);
    Reading reading;
    ByteView left = stream;
    while (!left.empty()) {
      const auto n = *rc::gen::inRange<std::size_t>(1, left.size() + 1);
      RC_ASSERT(bool(reading.feed(left.first(n))));
      left = left.subspan(n);
    }
    RC_ASSERT(reading.frames == sent);
    RC_ASSERT(reading.reader.between_frames());
  });
}

TEST_CASE("a stream that arrives byte by byte, or all at once, gives the same frames") {
  const Contents sent = {{1, 1, {}}, {2, 2, Bytes(kLimit, 7)}, {3, 3, {1}}};
  const Bytes stream = stream_of(sent);
  Reading whole, bytewise;
  REQUIRE(whole.feed(stream));
  for (const std::uint8_t byte : stream) REQUIRE(bytewise.feed({&byte, 1}));
  CHECK(whole.frames == sent);
  CHECK(bytewise.frames == sent);
}

TEST_CASE("a stream cut off anywhere gives the whole frames before the cut and no other") {
  const Contents sent = {{1, 1, {9, 9}}, {2, 2, {8, 8, 8}}};
  const Bytes stream = stream_of(sent);
  const std::size_t first = kFrameHeaderBytes + 2;
  for (std::size_t cut = 0; cut < stream.size(); ++cut) {
    Reading reading;
    REQUIRE(reading.feed(ByteView(stream).first(cut)));
    CHECK(reading.frames.size() == (cut < first ? 0 : 1));
    CHECK(reading.reader.between_frames() == (cut == 0 || cut == first));
  }
}

TEST_CASE("a body may be as long as the limit, and not a byte longer") {
  Reading fits, over;
  CHECK(fits.feed(stream_of({{1, 1, Bytes(kLimit)}})));
  const auto refused = over.feed(stream_of({{1, 1, Bytes(kLimit + 1)}}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == Errc::too_large);
  CHECK(over.frames.empty());
}

TEST_CASE("a length over the limit is refused with its fourth byte, and costs nothing") {
  for (const std::uint32_t length : {0xFFFFFFFFu, 0x80000000u, 0x40000000u, 1011u}) {
    Reading reading;
    const Bytes bytes = announcing(length);
    REQUIRE(reading.feed(ByteView(bytes).first(3)));

    Result<Unit> refused = Unit{};
    const auto biggest = test::biggest_allocation_during(
        [&] { refused = reading.feed(ByteView(bytes).subspan(3)); });
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == Errc::too_large);
    CHECK(biggest < test::kASentence);
  }
}

TEST_CASE("what is announced is paid for only as it arrives") {
  FrameReader reader(std::size_t{1} << 31);
  const auto ignore = [](const Frame&) -> Result<Unit> { return Unit{}; };
  const Bytes bytes = announcing(1u << 31);
  bool taken = false;
  const auto biggest =
      test::biggest_allocation_during([&] { taken = bool(reader.feed(bytes, ignore)); });
  CHECK(taken);
  CHECK(biggest < test::kASentence);
}

TEST_CASE("a length that does not even hold the header is malformed") {
  for (std::uint32_t length = 0; length < kFrameHeaderBytes - kFrameLengthBytes; ++length) {
    Reading reading;
    const auto refused = reading.feed(announcing(length));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == Errc::malformed);
  }
}

TEST_CASE("a reader that has failed stays failed, whatever comes") {
  Reading reading;
  const auto failed = reading.feed(announcing(0xFFFFFFFF));
  const auto later = reading.feed(stream_of({{1, 1, {}}}));
  REQUIRE_FALSE(later);
  CHECK(later.error() == failed.error());
  CHECK(reading.frames.empty());
}

TEST_CASE("a frame that its taker refuses is the last one taken") {
  FrameReader reader(kLimit);
  int taken = 0;
  const auto refuse = [&](const Frame&) -> Result<Unit> {
    ++taken;
    return Error(Errc::malformed, "not this one");
  };
  const Bytes stream = stream_of({{1, 1, {}}, {1, 2, {}}});
  CHECK_FALSE(reader.feed(stream, refuse));
  CHECK_FALSE(reader.feed(stream, refuse));
  CHECK(taken == 1);
}

}  // namespace corro
