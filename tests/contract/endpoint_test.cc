#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/contract/endpoint_pairs.h"

using namespace corro;
using namespace corro::runtime;
using Catch::Matchers::Contains;

namespace {

Header header(std::size_t bytes, std::uint64_t sequence = 1) {
  Header made;
  made.tag = {.generation = 5, .group = 9, .sequence = sequence, .step = 0};
  made.digest = 77;
  made.bytes = bytes;
  return made;
}

// A body and where it lies.
struct Parcel {
  Bytes bytes;
  Pieces pieces{ByteView(bytes)};

  explicit Parcel(Bytes body) : bytes(std::move(body)) {}
  Body body() const { return {&pieces, {0, bytes.size()}}; }
};

void send(Endpoint& from, const Header& header, const Parcel& parcel) {
  from.send(header, "", parcel.body());
}

Bytes pattern(std::size_t bytes, std::uint8_t first) {
  Bytes out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::uint8_t>(first + i * 7);
  return out;
}

// Takes what comes until all of it is there.
struct Receiver {
  Endpoint& from;
  Bytes into;
  std::size_t size = 0;

  Receiver(Endpoint& endpoint, const Header& header) : from(endpoint), into(header.bytes) {
    from.expect({header, "a test"});
  }

  bool done() const { return from.received(); }
  Outcome<bool> move(std::size_t piece = 100'000) {
    if (auto moved = from.progress(); !moved) return moved;
    const auto rest = MutByteView(into).subspan(size);
    const auto taken = from.take(rest.first(std::min(rest.size(), piece)));
    if (!taken) return taken.error();
    size += *taken;
    return *taken > 0;
  }
};

template <class Pair>
Bytes receive(Pair& pair, Endpoint& from, Endpoint& sender, const Header& header) {
  Receiver receiver(from, header);
  while (!receiver.done()) {
    const auto pushed = sender.progress();
    const auto moved = receiver.move();
    REQUIRE(pushed);
    REQUIRE(moved);
    if (!receiver.done() && !*pushed && !*moved) pair.wait();
  }
  return receiver.into;
}

// Bodies are compared in parentheses of their own: a reporter would print all of their bytes.

// What ends the endpoint, when something must.
template <class Pair>
Failure failure_of(Pair& pair, Endpoint& endpoint, Endpoint* other = nullptr) {
  for (;;) {
    if (other) (void)other->progress();
    const auto moved = endpoint.progress();
    if (!moved) return moved.error();
    if (!*moved) pair.wait();
  }
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("a message arrives as it was sent, whatever its size", "", EveryPair) {
  TestType pair;
  for (const std::size_t bytes : {0, 1, 43, 4096, 1'000'000}) {
    const Parcel body(pattern(bytes, 3));
    send(*pair.ada, header(bytes), body);
    CHECK((receive(pair, *pair.bob, *pair.ada, header(bytes)) == body.bytes));
    CHECK(pair.ada->sent());
  }
}

TEMPLATE_LIST_TEST_CASE("both directions move at once, beyond what the path can hold", "",
                        EveryPair) {
  TestType pair;
  const std::size_t bytes = 8'000'000;
  const Parcel to_bob(pattern(bytes, 1)), to_ada(pattern(bytes, 2));
  send(*pair.ada, header(bytes), to_bob);
  send(*pair.bob, header(bytes), to_ada);
  Receiver bob(*pair.bob, header(bytes)), ada(*pair.ada, header(bytes));
  while (!bob.done() || !ada.done() || !pair.ada->sent() || !pair.bob->sent()) {
    const auto a = ada.move(), b = bob.move();
    REQUIRE(a);
    REQUIRE(b);
    if (!*a && !*b && !(bob.done() && ada.done())) pair.wait();
  }
  CHECK((bob.into == to_bob.bytes));
  CHECK((ada.into == to_ada.bytes));
}

TEMPLATE_LIST_TEST_CASE("a body can be taken in pieces of any size", "", EveryPair) {
  TestType pair;
  const Parcel body(pattern(1000, 9));
  send(*pair.ada, header(1000), body);
  Receiver bob(*pair.bob, header(1000));
  while (!bob.done()) {
    REQUIRE(pair.ada->progress());
    const auto moved = bob.move(7);
    REQUIRE(moved);
    if (!*moved && !bob.done()) pair.wait();
  }
  CHECK((bob.into == body.bytes));
}

TEMPLATE_LIST_TEST_CASE("a message that comes early waits to be expected", "", EveryPair) {
  TestType pair;
  const Parcel body(pattern(100, 1));
  send(*pair.ada, header(100), body);
  while (!pair.ada->sent()) REQUIRE(pair.ada->progress());
  // Once its header is in, there is nothing to wait for: or who waits would not sleep.
  do {
    pair.wait();
    REQUIRE(pair.bob->progress());
  } while (pair.bob->interest().fd != -1);
  CHECK((receive(pair, *pair.bob, *pair.ada, header(100)) == body.bytes));
}

TEMPLATE_LIST_TEST_CASE("ranks that call different operations learn what each called", "",
                        EveryPair) {
  TestType pair;
  Header other = header(100);
  other.digest = 78;
  const std::string_view description = "allreduce(sum of 12 f64)";
  other.description_bytes = static_cast<std::uint16_t>(description.size());
  const Parcel body{Bytes(100)};
  pair.ada->send(other, description, body.body());
  pair.bob->expect({header(100), "broadcast(25 f32 from rank 0)"});
  const Failure failure = failure_of(pair, *pair.bob, pair.ada.get());
  CHECK(failure.code == Errc::invalid_input);
  CHECK_THAT(failure.text, Contains("rank 1 on host ada is allreduce(sum of 12 f64)"));
  CHECK_THAT(failure.text, Contains("rank 2 on host bob is broadcast(25 f32 from rank 0)"));
  CHECK(pair.bob->progress().error() == failure);
}

TEMPLATE_LIST_TEST_CASE("a message of another generation is not taken", "", EveryPair) {
  TestType pair;
  Header late = header(8);
  late.tag.generation = 4;
  const Parcel body{Bytes(8)};
  send(*pair.ada, late, body);
  pair.bob->expect({header(8), "a test"});
  const Failure failure = failure_of(pair, *pair.bob, pair.ada.get());
  CHECK_THAT(failure.text, Contains("rank 1 on host ada is in generation 4"));
}

TEMPLATE_LIST_TEST_CASE("who gives up is heard, in its own words, by one who expects nothing", "",
                        EveryPair) {
  TestType pair;
  const Failure why(Errc::peer_lost, 9, "rank 9 on host x was killed by SIGKILL");
  pair.ada->abort(why);
  CHECK(failure_of(pair, *pair.bob, pair.ada.get()) == why);
}

TEMPLATE_LIST_TEST_CASE("last words come after the message under way, even if the speaker leaves",
                        "", EveryPair) {
  TestType pair;
  const Failure why(Errc::timed_out, 3, "enough");
  const Parcel body(pattern(2000, 1));
  send(*pair.ada, header(2000), body);
  pair.ada->abort(why);
  while (!pair.ada->sent()) REQUIRE(pair.ada->progress());
  pair.ada.reset();

  Receiver bob(*pair.bob, header(2000));
  while (!bob.done())
    if (!*bob.move()) pair.wait();
  CHECK((bob.into == body.bytes));
  CHECK(failure_of(pair, *pair.bob) == why);
}

TEMPLATE_LIST_TEST_CASE("last words are heard through messages that nobody took", "", EveryPair) {
  TestType pair;
  const Parcel body(pattern(300, 3));
  const bool expected = GENERATE(false, true);
  if (expected) pair.bob->expect({header(body.bytes.size()), "a test"});
  send(*pair.ada, header(body.bytes.size()), body);
  while (!pair.ada->sent())
    if (!*pair.ada->progress()) pair.wait();
  (void)pair.bob->progress();  // has seen that a message begins
  CHECK_FALSE(pair.bob->last_words());
  pair.ada->send(header(0, 2), "", {});
  pair.ada->abort(Failure(Errc::peer_lost, 7, "rank 7 is gone"));
  while (!pair.ada->sent())
    if (!*pair.ada->progress()) pair.wait();
  std::optional<Failure> told;
  while (!(told = pair.bob->last_words())) pair.wait();
  CHECK(told->rank == 7);
  CHECK(told->text == "rank 7 is gone");
}

TEMPLATE_LIST_TEST_CASE("a peer that has gone without a word has no last words", "", EveryPair) {
  TestType pair;
  pair.ada.reset();
  CHECK_FALSE(pair.bob->last_words());
}

TEMPLATE_LIST_TEST_CASE("words too long for a message are cut, not lost", "", EveryPair) {
  TestType pair;
  pair.ada->abort(Failure(Errc::peer_lost, 3, std::string(100'000, 'x')));
  const Failure heard = failure_of(pair, *pair.bob, pair.ada.get());
  CHECK(heard.rank == 3);
  CHECK(heard.text.size() > 1000);
}

TEMPLATE_LIST_TEST_CASE("a peer that is gone matters only to who wants something of it", "",
                        EveryPair) {
  TestType pair;
  pair.ada.reset();
  pair.wait();
  for (int i = 0; i < 3; ++i) REQUIRE(pair.bob->progress());
  CHECK(pair.bob->interest().fd == -1);

  SECTION("a message") {
    pair.bob->expect({header(4), "a test"});
  }
  const Parcel body{Bytes(4)};
  SECTION("an ear") {
    send(*pair.bob, header(4), body);
  }
  const Failure failure = failure_of(pair, *pair.bob);
  CHECK(failure.code == Errc::closed);
  CHECK(failure.rank == 1);
  CHECK_THAT(failure.text, Contains("rank 1 on host ada closed its connection"));
}

TEMPLATE_LIST_TEST_CASE("a peer that goes in the middle of a message is gone", "", EveryPair) {
  TestType pair;
  const Parcel body{Bytes(8'000'000)};
  send(*pair.ada, header(body.bytes.size()), body);
  Receiver bob(*pair.bob, header(body.bytes.size()));
  while (bob.size == 0) {
    REQUIRE(pair.ada->progress());
    const auto moved = bob.move();
    REQUIRE(moved);
    if (!*moved) pair.wait();
  }
  pair.ada.reset();

  auto moved = bob.move();
  for (; moved; moved = bob.move())
    if (!*moved) pair.wait();
  CHECK(moved.error().code == Errc::closed);
  CHECK(moved.error().rank == 1);
}

TEMPLATE_LIST_TEST_CASE("a body that lies in pieces arrives as one", "", EveryPair) {
  TestType pair;
  const Bytes whole = pattern(5000, 4);
  std::vector<Bytes> parts;
  std::vector<Pieces::Piece> views;
  for (std::size_t at = 0, size = 1; at < whole.size(); at += size, size = size * 2 % 701 + 1) {
    const std::size_t end = std::min(whole.size(), at + size);
    parts.emplace_back(whole.begin() + static_cast<std::ptrdiff_t>(at),
                       whole.begin() + static_cast<std::ptrdiff_t>(end));
  }
  for (const Bytes& part : parts) views.emplace_back(part);
  const Pieces pieces(views);
  REQUIRE(pieces.size() == whole.size());
  pair.ada->send(header(4000), "", {&pieces, {500, 4500}});
  const Bytes got = receive(pair, *pair.bob, *pair.ada, header(4000));
  CHECK(got == Bytes(whole.begin() + 500, whole.begin() + 4500));
}

TEST_CASE("a forked child that closes its copy of a link leaves the parent's open") {
  TcpPair pair;
  const pid_t child = ::fork();
  if (child == 0) {
    pair.ada.reset();
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  const Parcel body(pattern(100, 1));
  send(*pair.ada, header(100), body);
  CHECK((receive(pair, *pair.bob, *pair.ada, header(100)) == body.bytes));
}

TEST_CASE("a link that is closed ends for the peer, though a forked child still holds it") {
  TcpPair pair;
  const auto until = make_pipe();
  REQUIRE(until);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte;
    ::close(until->write_end.get());
    (void)!::read(until->read_end.get(), &byte, 1);
    ::_exit(0);
  }
  pair.ada.reset();
  pair.bob->expect({header(4), "a test"});
  CHECK(failure_of(pair, *pair.bob).code == Errc::closed);
  ::kill(child, SIGKILL);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
}
