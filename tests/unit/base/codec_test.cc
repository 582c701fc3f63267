#include "base/codec.h"

#include <rapidcheck/catch.h>

#include "allocations.h"
#include "tests/support/print_error.h"

namespace corro {

namespace {

enum class Colour { red, green, blue };
constexpr Colour last_of(Colour) {
  return Colour::blue;
}

struct Point {
  std::int32_t x = 0;
  std::string name;
  CORRO_FIELDS(x, name)
  bool operator==(const Point&) const = default;
};

// One field of every type that there is.
struct Everything {
  static constexpr std::uint16_t kKind = 1;
  std::uint8_t u8 = 0;
  std::uint16_t u16 = 0;
  std::uint32_t u32 = 0;
  std::uint64_t u64 = 0;
  std::int8_t i8 = 0;
  std::int16_t i16 = 0;
  std::int32_t i32 = 0;
  std::int64_t i64 = 0;
  bool yes = false;
  Colour colour = Colour::red;
  std::string text;
  Bytes bytes;
  std::vector<std::uint32_t> numbers;
  std::vector<std::string> texts;
  std::vector<Point> points;
  std::vector<std::vector<std::uint16_t>> nested;
  std::optional<std::uint64_t> maybe;
  std::optional<Point> maybe_point;
  Point point;
  CORRO_FIELDS(u8, u16, u32, u64, i8, i16, i32, i64, yes, colour, text, bytes, numbers, texts,
               points, nested, maybe, maybe_point, point)
  bool operator==(const Everything&) const = default;
};

struct Nothing {
  static constexpr std::uint16_t kKind = 2;
  CORRO_FIELDS()
  bool operator==(const Nothing&) const = default;
};

struct Flag {
  bool on = false;
  CORRO_FIELDS(on)
};
struct Painted {
  Colour colour = Colour::red;
  CORRO_FIELDS(colour)
};
struct Texts {
  std::vector<std::string> texts;
  CORRO_FIELDS(texts)
};
struct Text {
  std::string text;
  CORRO_FIELDS(text)
};

using Protocol = std::variant<Everything, Nothing>;

Everything an_example() {
  Everything e;
  e.text = "hello";
  e.bytes = {1, 2, 3};
  e.numbers = {4, 5};
  e.texts = {"", "a"};
  e.points = {{1, "p"}};
  e.nested = {{}, {6}};
  e.maybe = 7;
  e.maybe_point = Point{-1, "q"};
  return e;
}

template <class M>
Errc refusal_of(const Bytes& bytes) {
  const auto decoded = decode<M>(bytes);
  REQUIRE_FALSE(decoded);
  return decoded.error().code();
}

}  // namespace
}  // namespace corro

template <>
struct rc::Arbitrary<corro::Point> {
  static Gen<corro::Point> arbitrary() {
    return gen::build<corro::Point>(gen::set(&corro::Point::x), gen::set(&corro::Point::name));
  }
};

namespace corro {
namespace {

// Inside a property.  (One generator of all fields would be shorter, and takes g++ a minute.)
Everything any_message() {
  Everything e;
  const auto fill = [](auto&... fields) {
    ((fields = *rc::gen::arbitrary<std::decay_t<decltype(fields)>>()), ...);
  };
  fill(e.u8, e.u16, e.u32, e.u64, e.i8, e.i16, e.i32, e.i64, e.yes, e.text, e.bytes, e.numbers,
       e.texts, e.points, e.nested, e.point);
  e.colour = *rc::gen::element(Colour::red, Colour::green, Colour::blue);
  if (*rc::gen::arbitrary<bool>()) fill(e.maybe.emplace());
  if (*rc::gen::arbitrary<bool>()) fill(e.maybe_point.emplace());
  return e;
}

}  // namespace

TEST_CASE("what was encoded is decoded to the same message") {
  rc::prop("for messages with fields of every type", [] {
    const Everything message = any_message();
    const auto back = decode<Everything>(encode(message));
    RC_ASSERT(bool(back));
    RC_ASSERT(*back == message);
  });
}

TEST_CASE("whatever bytes can be decoded are exactly those that the message encodes to") {
  rc::prop("for bytes that were an encoded message before one of them changed", [] {
    Bytes bytes = encode(any_message());
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<std::uint8_t>();
    const auto message = decode<Everything>(bytes);
    if (message) RC_ASSERT(encode(*message) == bytes);
  });
}

TEST_CASE("the bytes of a message are those that the codec's page says") {
  const Bytes bytes = encode(Point{-2, "ab"});
  CHECK(bytes == Bytes{0xFE, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 'a', 'b'});
  CHECK(encode(Flag{true}) == Bytes{1});
  CHECK(encode(Painted{Colour::blue}) == Bytes{2});
  CHECK(encode(Texts{{"x", ""}}) == Bytes{2, 0, 0, 0, 1, 0, 0, 0, 'x', 0, 0, 0, 0});
}

TEST_CASE("a message cut off anywhere is malformed") {
  const Bytes bytes = encode(an_example());
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    CHECK(refusal_of<Everything>(Bytes(bytes.begin(), bytes.begin() + static_cast<long>(cut))) ==
          Errc::malformed);
}

TEST_CASE("one byte too many is malformed") {
  Bytes bytes = encode(an_example());
  bytes.push_back(0);
  CHECK(refusal_of<Everything>(bytes) == Errc::malformed);
  CHECK(refusal_of<Nothing>({0}) == Errc::malformed);
}

TEST_CASE("a bool is 0 or 1, and an enum is one of its values") {
  for (int byte = 0; byte < 256; ++byte) {
    const Bytes bytes = {static_cast<std::uint8_t>(byte)};
    CHECK(bool(decode<Flag>(bytes)) == (byte <= 1));
    CHECK(bool(decode<Painted>(bytes)) == (byte <= 2));
  }
}

TEST_CASE("counts and lengths are not believed: a huge one is malformed and costs nothing") {
  const Bytes huge = {0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0};
  bool taken = false;
  const auto biggest = test::biggest_allocation_during(
      [&] { taken = bool(decode<Text>(huge)) || bool(decode<Texts>(huge)); });
  CHECK_FALSE(taken);
  CHECK(biggest < test::kASentence);
}

TEST_CASE("a message tells its kind, and comes back by it") {
  const auto kind_and_back = [](const Protocol& message, std::uint16_t kind) {
    const Bytes bytes = encode_frame(message, 9);
    FrameReader reader(1000);
    const auto taken = reader.feed(bytes, [&](const Frame& frame) -> Result<Unit> {
      CHECK(frame.kind == kind);
      CHECK(frame.seq == 9);
      const auto back = decode_frame<Protocol>(frame);
      CHECK((back && *back == message));
      return Unit{};
    });
    CHECK(taken);
  };
  kind_and_back(an_example(), 1);
  kind_and_back(Nothing{}, 2);
}

TEST_CASE("a kind that the protocol does not have is malformed, and named") {
  const auto decoded = decode_frame<Protocol>(Frame{77, 1, {}});
  REQUIRE_FALSE(decoded);
  CHECK(decoded.error() == Error(Errc::malformed, "a message of unknown kind 77"));
}

TEST_CASE("a known kind with the fields of another is malformed") {
  const Bytes body = encode(an_example());
  const auto decoded = decode_frame<Protocol>(Frame{Nothing::kKind, 1, body});
  REQUIRE_FALSE(decoded);
  CHECK(decoded.error().code() == Errc::malformed);
}

}  // namespace corro
