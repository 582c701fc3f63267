#include <catch2/catch.hpp>

#include "tests/contract/endpoint_pairs.h"

using namespace corro;
using namespace corro::runtime;
using Catch::Matchers::Contains;

namespace {

Header header(std::size_t bytes, std::uint64_t sequence = 1) {
  return {.generation = 5,
          .sequence = sequence,
          .operation = {.collective = Collective::broadcast, .count = bytes / 4},
          .bytes = bytes};
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
    from.expect(header);
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
    const Bytes body = pattern(bytes, 3);
    pair.ada->send(header(bytes), body);
    CHECK(receive(pair, *pair.bob, *pair.ada, header(bytes)) == body);
    CHECK(pair.ada->sent());
  }
}

TEMPLATE_LIST_TEST_CASE("both directions move at once, beyond what the path can hold", "",
                        EveryPair) {
  TestType pair;
  const std::size_t bytes = 8'000'000;
  const Bytes to_bob = pattern(bytes, 1), to_ada = pattern(bytes, 2);
  pair.ada->send(header(bytes), to_bob);
  pair.bob->send(header(bytes), to_ada);
  Receiver bob(*pair.bob, header(bytes)), ada(*pair.ada, header(bytes));
  while (!bob.done() || !ada.done() || !pair.ada->sent() || !pair.bob->sent()) {
    const auto a = ada.move(), b = bob.move();
    REQUIRE(a);
    REQUIRE(b);
    if (!*a && !*b && !(bob.done() && ada.done())) pair.wait();
  }
  CHECK(bob.into == to_bob);
  CHECK(ada.into == to_ada);
}

TEMPLATE_LIST_TEST_CASE("a body can be taken in pieces of any size", "", EveryPair) {
  TestType pair;
  const Bytes body = pattern(1000, 9);
  pair.ada->send(header(1000), body);
  Receiver bob(*pair.bob, header(1000));
  while (!bob.done()) {
    REQUIRE(pair.ada->progress());
    const auto moved = bob.move(7);
    REQUIRE(moved);
    if (!*moved && !bob.done()) pair.wait();
  }
  CHECK(bob.into == body);
}

TEMPLATE_LIST_TEST_CASE("a message that comes early waits to be expected", "", EveryPair) {
  TestType pair;
  const Bytes body = pattern(100, 1);
  pair.ada->send(header(100), body);
  while (!pair.ada->sent()) REQUIRE(pair.ada->progress());
  // Once its header is in, there is nothing to wait for: or who waits would not sleep.
  do {
    pair.wait();
    REQUIRE(pair.bob->progress());
  } while (pair.bob->interest().fd != -1);
  CHECK(receive(pair, *pair.bob, *pair.ada, header(100)) == body);
}

TEMPLATE_LIST_TEST_CASE("ranks that call different operations learn what each called", "",
                        EveryPair) {
  TestType pair;
  Header sum = header(100), copy = header(100);
  sum.operation = {.collective = Collective::allreduce, .type = DataType::f64, .count = 12};
  const Bytes body(100);
  pair.ada->send(sum, body);
  pair.bob->expect(copy);
  const Failure failure = failure_of(pair, *pair.bob, pair.ada.get());
  CHECK(failure.code == Errc::invalid_input);
  CHECK_THAT(failure.text, Contains("rank 1 on host ada is allreduce(sum of 12 f64)"));
  CHECK_THAT(failure.text, Contains("rank 2 on host bob is broadcast(25 f32 from rank 0)"));
  CHECK(pair.bob->progress().error() == failure);
}

TEMPLATE_LIST_TEST_CASE("a message of another generation is not taken", "", EveryPair) {
  TestType pair;
  Header late = header(8);
  late.generation = 4;
  const Bytes body(8);
  pair.ada->send(late, body);
  pair.bob->expect(header(8));
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
  const Bytes body = pattern(2000, 1);
  pair.ada->send(header(2000), body);
  pair.ada->abort(why);
  while (!pair.ada->sent()) REQUIRE(pair.ada->progress());
  pair.ada.reset();

  Receiver bob(*pair.bob, header(2000));
  while (!bob.done())
    if (!*bob.move()) pair.wait();
  CHECK(bob.into == body);
  CHECK(failure_of(pair, *pair.bob) == why);
}

TEMPLATE_LIST_TEST_CASE("last words are heard through messages that nobody took", "", EveryPair) {
  TestType pair;
  const Bytes body = pattern(300, 3);
  const bool expected = GENERATE(false, true);
  if (expected) pair.bob->expect(header(body.size()));
  pair.ada->send(header(body.size()), body);
  while (!pair.ada->sent())
    if (!*pair.ada->progress()) pair.wait();
  (void)pair.bob->progress();  // has seen that a message begins
  CHECK_FALSE(pair.bob->last_words());
  pair.ada->send(header(0, 2), {});
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
    pair.bob->expect(header(4));
  }
  const Bytes body(4);
  SECTION("an ear") {
    pair.bob->send(header(4), body);
  }
  const Failure failure = failure_of(pair, *pair.bob);
  CHECK(failure.code == Errc::closed);
  CHECK(failure.rank == 1);
  CHECK_THAT(failure.text, Contains("rank 1 on host ada closed its connection"));
}

TEMPLATE_LIST_TEST_CASE("a peer that goes in the middle of a message is gone", "", EveryPair) {
  TestType pair;
  const Bytes body(8'000'000);
  pair.ada->send(header(body.size()), body);
  Receiver bob(*pair.bob, header(body.size()));
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
