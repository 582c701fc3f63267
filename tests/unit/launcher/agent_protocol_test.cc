#include "launcher/agent/protocol.h"

#include <rapidcheck/catch.h>

#include "launcher/session/session.h"

namespace corro::launcher::agent {

namespace {

template <class T>
T any() {
  return *rc::gen::arbitrary<T>();
}

using Strings = std::vector<std::string>;

Down some_down() {
  switch (*rc::gen::inRange(0, 13)) {
    case 0:
      return Hello{any<std::string>(), any<std::uint32_t>(), any<std::uint32_t>()};
    case 1:
      return Start{any<std::uint32_t>(),
                   any<Strings>(),
                   any<Strings>(),
                   any<std::string>(),
                   any<std::uint32_t>(),
                   any<bool>(),
                   any<std::vector<std::int32_t>>()};
    case 2:
      return Signal{any<std::uint32_t>(), any<std::int32_t>()};
    case 3:
      return Lease{};
    case 4:
      return Ack{any<std::uint64_t>()};
    case 5:
      return Input{any<std::uint32_t>(), any<Bytes>(), any<bool>()};
    case 6:
      return Hold{};
    case 7:
      return Resume{};
    case 8:
      return Survey{any<bool>(), any<bool>(), 1, 2,
                    Opener{any<std::string>(), any<Bytes>(), any<Strings>(), any<std::string>()}};
    case 10:
      return Knock{{{any<std::string>(), {{any<std::string>(), any<std::string>(), 7, 8}}}}};
    case 9:
      return Examine{};
    case 11:
      return Inspect{any<std::string>(), any<Strings>(), any<Strings>(), any<std::uint32_t>()};
    default:
      return Close{};
  }
}

Inspection some_inspection() {
  Inspection out;
  out.hostname = any<std::string>();
  out.memlock = {any<std::uint64_t>(), Limit::kNone};
  out.cwd = Folder{any<std::string>(), any<bool>(), any<bool>(), any<bool>(), 1, 2, ""};
  out.python = Python{any<std::string>(), "3.11.2", {{"torch", "2.13.0", any<std::string>()}}};
  out.nics = {{"eth0", "10.0.0.1", any<bool>(), any<bool>(), any<std::int32_t>()}};
  out.troubles = {{Trouble::About::gpus, any<std::string>()}};
  return out;
}

Up some_up() {
  switch (*rc::gen::inRange(0, 16)) {
    case 0:
      return Ready{any<std::string>(), any<std::int32_t>()};
    case 1:
      return Started{any<std::uint32_t>(), any<std::int32_t>()};
    case 2:
      return Failed{any<std::uint32_t>(),
                    *rc::gen::element(Errc::invalid_input, Errc::not_found, Errc::io),
                    any<std::string>()};
    case 3:
      return Output{any<std::uint32_t>(), *rc::gen::element(Stream::out, Stream::err),
                    any<std::int64_t>(), any<Bytes>()};
    case 4:
      return Exited{any<std::uint32_t>(),
                    {any<std::int32_t>(), any<std::int32_t>()},
                    {any<std::string>(), 2, 1, 3},
                    {OomVerdict::By::kernel_log, 7, {}, 9, any<std::string>()},
                    {any<std::uint64_t>(), any<std::uint64_t>()}};
    case 5:
      return Facts{any<std::uint32_t>(), any<std::uint16_t>(), {}, {}, {}, any<Strings>()};
    case 7:
      return Finding{any<std::uint32_t>(), {any<std::string>(), 2, 1, 3}, {}};
    case 12:
      return Knocked{{{any<std::string>(), {1, 2}, any<std::string>()}}};
    case 13:
      return Alive{};
    case 8:
      return Examined{};
    case 9:
      return Reached{any<std::string>(), 1, 2, 3, 4, any<bool>(), any<std::uint32_t>(),
                     any<std::string>()};
    case 10:
      return Unreached{*rc::gen::element(Barrier::name, Barrier::silent), any<std::string>(),
                       any<std::string>()};
    case 11:
      return Inspected{some_inspection(), any<std::int64_t>(), any<std::int64_t>()};
    case 6:
      return Taken{any<std::uint32_t>(), any<std::uint32_t>()};
    default:
      return Ending{any<std::string>()};
  }
}

// What a reader makes of a stream of frames.
template <class Message>
std::vector<std::pair<std::uint64_t, Message>> read_all(ByteView stream, std::size_t limit) {
  std::vector<std::pair<std::uint64_t, Message>> out;
  const auto fed = FrameReader(limit).feed(stream, [&](const Frame& frame) -> Result<Unit> {
    auto message = decode_frame<Message>(frame);
    if (!message) return message.error();
    out.emplace_back(frame.seq, std::move(*message));
    return Unit{};
  });
  RC_ASSERT(fed);
  return out;
}

std::string hex(ByteView bytes) {
  std::string text;
  for (const auto byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    if (!text.empty()) text += ' ';
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

Result<Unit> refusal(ByteView stream, std::size_t limit) {
  return FrameReader(limit).feed(stream, [](const Frame& frame) -> Result<Unit> {
    auto message = decode_frame<Down>(frame);
    if (!message) return message.error();
    return Unit{};
  });
}

}  // namespace

TEST_CASE("every message arrives as it was sent") {
  rc::prop("down", [] {
    const Down message = some_down();
    const auto seq = any<std::uint64_t>();
    const auto arrived = read_all<Down>(encode_frame(message, seq), kDownLimit);
    RC_ASSERT(arrived == (std::vector<std::pair<std::uint64_t, Down>>{{seq, message}}));
  });
  rc::prop("up", [] {
    const Up message = some_up();
    const auto seq = any<std::uint64_t>();
    const auto arrived = read_all<Up>(encode_frame(message, seq), kUpLimit);
    RC_ASSERT(arrived == (std::vector<std::pair<std::uint64_t, Up>>{{seq, message}}));
  });
}

TEST_CASE("a message that is cut short or has something added is refused") {
  rc::prop("down", [] {
    const Down message = some_down();
    std::visit(
        []<class M>(const M& m) {
          Bytes body = encode(m);
          for (std::size_t size = 0; size < body.size(); ++size)
            RC_ASSERT(!decode<M>(ByteView(body).first(size)));
          body.push_back(0);
          RC_ASSERT(!decode<M>(body));
        },
        message);
  });
}

TEST_CASE("no kind is used in both directions") {
  // Both ends could then not be told apart in a recording.
  for (const std::uint16_t down :
       {Hello::kKind, Start::kKind, Signal::kKind, Lease::kKind, Ack::kKind, Close::kKind})
    CHECK(down < 64);
  for (const std::uint16_t up :
       {Ready::kKind, Started::kKind, Failed::kKind, Output::kKind, Exited::kKind, Ending::kKind})
    CHECK(up > 64);
}

TEST_CASE("the largest output fits into a frame, and so does the longest reason") {
  CHECK(encode(Output{1, Stream::out, 0, Bytes(kOutputBytes)}).size() <= kUpLimit);
  CHECK(encode(Failed{1, Errc::io, std::string(kWhyBytes, 'x')}).size() <= kUpLimit);
}

TEST_CASE("an unknown kind ends the conversation") {
  Bytes stream;
  append_frame(stream, {99, 1, {}});
  const auto refused = refusal(stream, kDownLimit);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Error(Errc::malformed, "a message of unknown kind 99"));
}

TEST_CASE("a length of 4 GiB is refused when it is read") {
  const Bytes stream(4, 0xff);
  const auto refused = refusal(stream, kDownLimit);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == Errc::too_large);
}

TEST_CASE("the bytes are those of PROTOCOL.md") {
  CHECK(hex(encode_frame(Down(Hello{"0.1.0", 5000, 5000}), 1)) ==
        "1b 00 00 00 01 00 01 00 00 00 00 00 00 00 05 00 00 00 30 2e 31 2e 30 88 13 00 00 88 13 00 "
        "00");
  CHECK(hex(encode_frame(Up(Started{0, 28484}), 3)) ==
        "12 00 00 00 42 00 03 00 00 00 00 00 00 00 00 00 00 00 44 6f 00 00");
}

}  // namespace corro::launcher::agent
