#include "base/channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "allocations.h"
#include "base/socket.h"
#include "tests/unit/base/connected_pair.h"

namespace corro {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLimit = 1 << 20;

struct Word {
  static constexpr std::uint16_t kKind = 1;
  std::string text;
  CORRO_FIELDS(text)
};
using Words = std::variant<Word>;

// One end, and what it heard.
struct Speaker {
  Speaker(Loop& loop, Fd in, Fd out = {}, std::optional<Proof> proof = {})
      : channel(loop, std::move(in), std::move(out), kLimit, std::move(proof),
                {.on_frame = [this](const Frame& frame) { return on_frame(frame); },
                 .on_end = [this](const Error& why) { ends.push_back(why); },
                 .on_proved = [this] { ++proved; }}) {}

  Result<Unit> on_frame(const Frame& frame) {
    auto message = decode_frame<Words>(frame);
    if (!message) return message.error();
    heard.push_back(std::get<Word>(*message).text);
    numbers.push_back(frame.seq);
    return Unit{};
  }

  void say(std::string text) { channel.send(Words(Word{std::move(text)})); }

  std::vector<std::string> heard;
  std::vector<std::uint64_t> numbers;
  std::vector<Error> ends;
  int proved = 0;
  Channel channel;
};

// Runs the loop until it holds; a minute is for ever.
template <class Condition>
void run_until(Loop& loop, Condition condition) {
  const auto give_up = loop.at(loop.now() + 60s, [&] { loop.stop(); });
  std::function<void()> look = [&] { condition() ? loop.stop() : loop.post(look); };
  loop.post(look);
  loop.run();
  REQUIRE(condition());
}

void settle(Loop& loop) {
  const auto end = loop.at(loop.now() + 1ms, [&] { loop.stop(); });
  loop.run();
}

Proof proof(Proof::Role role, const Key& key) {
  return Proof(role, key, "test");
}

void write_raw(const Fd& fd, ByteView bytes) {
  REQUIRE(write_all(fd.get(), bytes, Deadline::in(5s)));
}

Bytes frame_of(const std::string& text) {
  return encode_frame(Words(Word{text}), 1);
}

using Heard = std::vector<std::string>;

}  // namespace

TEST_CASE("two ends of a socket hear each other, in order and numbered") {
  Loop loop;
  Pair pair = connected_pair();
  Speaker a(loop, std::move(pair.a)), b(loop, std::move(pair.b));
  a.say("one");
  a.say("two");
  b.say("three");
  run_until(loop, [&] { return b.heard.size() == 2 && a.heard.size() == 1; });
  CHECK(b.heard == Heard{"one", "two"});
  CHECK(b.numbers == std::vector<std::uint64_t>{1, 2});
  CHECK(a.heard == Heard{"three"});
}

TEST_CASE("two pipes serve as well as one socket, and need not be non-blocking before") {
  Loop loop;
  auto there = make_pipe(), back = make_pipe();
  Speaker a(loop, std::move(back->read_end), std::move(there->write_end));
  Speaker b(loop, std::move(there->read_end), std::move(back->write_end));
  const std::string big(kLimit - 100, 'x');  // more than a pipe holds: it would block for ever
  a.say(big);
  b.say("back");
  run_until(loop, [&] { return !b.heard.empty() && !a.heard.empty(); });
  CHECK(b.heard == Heard{big});
  CHECK(a.heard == Heard{"back"});
}

namespace {

// Of three questions that come together: whether an answer had gone out when each was heard.
std::vector<bool> gone_out(Duration thinking) {
  Loop loop;
  Pair pair = connected_pair();
  std::vector<bool> seen;
  std::unique_ptr<Channel> channel;
  const auto answer = [&](const Frame&) -> Result<Unit> {
    seen.push_back(bool(wait_for_any({{pair.a.get(), true}}, Deadline::in(0s))));
    channel->send(Words(Word{"answer"}));
    std::this_thread::sleep_for(thinking);
    return Unit{};
  };
  channel = std::make_unique<Channel>(loop, std::move(pair.b), Fd(), kLimit, std::nullopt,
                                      Channel::Events{answer, [](const Error&) {}, {}});
  Bytes three;
  for (int i = 0; i < 3; ++i) append(three, frame_of("question"));
  write_raw(pair.a, three);
  run_until(loop, [&] { return seen.size() == 3; });
  CHECK(wait_for_any({{pair.a.get(), true}}, Deadline::in(0s)));
  return seen;
}

}  // namespace

TEST_CASE("answers to what came together go out together, unless it takes long") {
  CHECK(gone_out(20ms) == std::vector<bool>{false, false, true});
  // This process may stand still for long, too, but not each time.
  bool together = false;
  for (int i = 0; i < 100 && !together; ++i)
    together = gone_out(0ms) == std::vector<bool>{false, false, false};
  CHECK(together);
}

TEST_CASE("a backlog larger than any buffer flows, whole and in order") {
  Loop loop;
  Pair pair = connected_pair();
  Speaker a(loop, std::move(pair.a)), b(loop, std::move(pair.b));
  constexpr int kWords = 64;
  for (int i = 0; i < kWords; ++i) a.say(std::to_string(i) + std::string(200'000, 'x'));
  CHECK(a.channel.backlog() > 10'000'000);
  run_until(loop, [&] { return b.heard.size() == kWords; });
  CHECK(a.channel.backlog() == 0);
  for (int i = 0; i < kWords; ++i)
    CHECK(b.heard[static_cast<std::size_t>(i)].starts_with(std::to_string(i) + "x"));
}

TEST_CASE("a flush writes what is queued while the other side reads") {
  Loop loop;
  Pair pair = connected_pair();
  Speaker a(loop, std::move(pair.a));
  a.say("before");
  a.channel.flush(Deadline::in(5s));
  CHECK(a.channel.backlog() == 0);
  Speaker b(loop, std::move(pair.b));
  run_until(loop, [&] { return !b.heard.empty(); });
  CHECK(b.heard == Heard{"before"});
}

TEST_CASE("a flush that runs out of time leaves the rest queued, and nothing is sent twice") {
  Loop loop;
  Pair pair = connected_pair();
  Speaker a(loop, std::move(pair.a));
  const std::string big(kLimit - 100, 'x');
  a.say(big);
  a.say("last");
  a.channel.flush(Deadline::in(1ms));
  CHECK(a.channel.backlog() > 0);
  Speaker b(loop, std::move(pair.b));
  run_until(loop, [&] { return b.heard.size() == 2; });
  CHECK(b.heard == Heard{big, "last"});
}

TEST_CASE("an end between two frames is an end in good order, told once") {
  Loop loop;
  Pair pair = connected_pair();
  Speaker a(loop, std::move(pair.a));
  write_raw(pair.b, frame_of("last words"));
  pair.b.reset();
  run_until(loop, [&] { return !a.ends.empty(); });
  settle(loop);
  CHECK(a.heard == Heard{"last words"});
  REQUIRE(a.ends.size() == 1);
  CHECK(a.ends[0].code() == Errc::closed);
  a.say("to nobody");
  a.channel.flush(Deadline::in(5s));
  settle(loop);
  CHECK(a.ends.size() == 1);
}

TEST_CASE("an end inside a frame is malformed") {
  const Bytes frame = frame_of("word");
  for (std::size_t cut = 1; cut < frame.size(); ++cut) {
    Loop loop;
    Pair pair = connected_pair();
    Speaker a(loop, std::move(pair.a));
    write_raw(pair.b, ByteView(frame).first(cut));
    pair.b.reset();
    run_until(loop, [&] { return !a.ends.empty(); });
    CHECK(a.ends[0].code() == Errc::malformed);
    CHECK(a.heard.empty());
  }
}

TEST_CASE("a length of four gigabytes ends the channel, and so does an unknown kind") {
  Loop loop;
  Pair pair = connected_pair(), other = connected_pair();
  Speaker a(loop, std::move(pair.a)), b(loop, std::move(other.a));
  write_raw(pair.b, Bytes{0xFF, 0xFF, 0xFF, 0xFF});
  Bytes unknown;
  append_frame(unknown, {99, 1, {}});
  write_raw(other.b, unknown);
  run_until(loop, [&] { return !a.ends.empty() && !b.ends.empty(); });
  CHECK(a.ends[0].code() == Errc::too_large);
  CHECK(b.ends[0].code() == Errc::malformed);
}

TEST_CASE("what was still to be read is read although nobody hears us any more") {
  Loop loop;
  Pair pair = connected_pair();
  Speaker a(loop, std::move(pair.a));
  write_raw(pair.b, frame_of("last words"));
  pair.b.reset();
  a.say("too late");
  run_until(loop, [&] { return !a.ends.empty(); });
  CHECK(a.heard == Heard{"last words"});
}

TEST_CASE("with a proof, both ends are told when it is done and then speak") {
  Loop loop;
  Pair pair = connected_pair();
  const Key key = Key::random();
  Speaker a(loop, std::move(pair.a), {}, proof(Proof::Role::client, key));
  Speaker b(loop, std::move(pair.b), {}, proof(Proof::Role::server, key));
  run_until(loop, [&] { return a.proved && b.proved; });
  a.say("hello");
  b.say("welcome");
  run_until(loop, [&] { return !a.heard.empty() && !b.heard.empty(); });
  CHECK(a.proved == 1);
  CHECK(b.proved == 1);
  CHECK(a.heard == Heard{"welcome"});
  CHECK(b.heard == Heard{"hello"});
}

TEST_CASE("frames that come in one piece with the end of the proof are heard") {
  Loop loop;
  Pair pair = connected_pair();
  const Key key = Key::random();
  Speaker b(loop, std::move(pair.b), {}, proof(Proof::Role::server, key));
  Proof client = proof(Proof::Role::client, key);
  write_raw(pair.a, client.opening());
  run_until(loop, [&] { return bool(wait_for_any({{pair.a.get(), true}}, Deadline::in(0s))); });

  Bytes answer(64), rest;
  REQUIRE(read_some(pair.a.get(), answer)->bytes == 64);
  REQUIRE(client.feed(answer, rest));
  append(rest, frame_of("in one piece"));
  write_raw(pair.a, rest);
  run_until(loop, [&] { return !b.heard.empty(); });
  CHECK(b.proved == 1);
}

TEST_CASE("frames before the proof are never heard, and end the channel") {
  Loop loop;
  Pair pair = connected_pair();
  Speaker b(loop, std::move(pair.b), {}, proof(Proof::Role::server, Key::random()));
  write_raw(pair.a, frame_of("let me in, I have a long story to tell"));
  run_until(loop, [&] { return !b.ends.empty(); });
  CHECK(b.ends[0].code() == Errc::refused);
  CHECK(b.heard.empty());
  CHECK(b.proved == 0);
}

TEST_CASE("another key ends both channels before anything is heard") {
  Loop loop;
  Pair pair = connected_pair();
  auto a = std::make_unique<Speaker>(loop, std::move(pair.a), Fd(),
                                     proof(Proof::Role::client, Key::random()));
  Speaker b(loop, std::move(pair.b), {}, proof(Proof::Role::server, Key::random()));
  run_until(loop, [&] { return !a->ends.empty(); });
  CHECK(a->ends[0].code() == Errc::refused);
  a.reset();
  run_until(loop, [&] { return !b.ends.empty(); });
  CHECK(b.ends[0].code() == Errc::refused);
  CHECK(b.proved == 0);
}

TEST_CASE("a channel may be destroyed with words under way") {
  Loop loop;
  Pair pair = connected_pair();
  {
    Speaker a(loop, std::move(pair.a));
    a.say(std::string(kLimit - 100, 'x'));
    settle(loop);
    CHECK(a.channel.backlog() > 0);
  }
  settle(loop);
  SUCCEED();
}

TEST_CASE("a stream that never runs dry does not keep what it has sent") {
  Loop loop;
  Pair pair = connected_pair();
  Speaker a(loop, std::move(pair.a)), b(loop, std::move(pair.b));
  const std::string big(kLimit / 2, 'x');
  for (int i = 0; i < 8; ++i) a.say(big);
  const auto biggest = test::biggest_allocation_during([&] {
    for (std::size_t round = 1; round <= 100; ++round) {
      run_until(loop, [&] { return b.heard.size() >= round; });
      a.say(big);
      CHECK(a.channel.backlog() > 0);
    }
  });
  CHECK(biggest < 32 * big.size());  // all of it would be a hundred
}

}  // namespace corro
