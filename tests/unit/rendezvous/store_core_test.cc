#include "rendezvous/store_core.h"

#include <rapidcheck/catch.h>

#include <numeric>

#include "tests/support/print_error.h"
#include "tests/support/store_story.h"

namespace corro::rendezvous {

using namespace store;
using namespace std::chrono_literals;

namespace {

using ClientId = StoreCore::ClientId;
using Replies = StoreCore::Replies;

// A store with three clients, whose time is passed by hand.
struct Stage {
  StoreCore core;
  TimePoint now{};
  std::uint64_t id = 0;  // of the last request

  Stage() {
    for (ClientId client = 1; client <= 3; ++client) REQUIRE(core.joined(client).empty());
  }

  Replies ask(ClientId client, const Request& request) { return core.on(client, request, now); }
  Replies set(ClientId client, std::string key, Bytes value) {
    return ask(client, Set{++id, std::move(key), std::move(value)});
  }
  Replies wait(ClientId client, std::string key, std::chrono::milliseconds within = 1s) {
    return ask(client, WaitFor{++id, std::move(key), static_cast<std::uint32_t>(within.count())});
  }
  Replies gather(ClientId client, std::uint32_t rank, std::uint32_t size, Bytes value = {},
                 std::chrono::milliseconds within = 1s) {
    return ask(client, Gather{++id, "g", rank, size, std::move(value),
                              static_cast<std::uint32_t>(within.count())});
  }
  Replies time_passes(Duration d) {
    now += d;
    return core.tick(now);
  }
};

Error refusal(const Replies& replies) {
  REQUIRE(replies.size() == 1);
  const auto* refused = std::get_if<Refused>(&replies[0].second);
  REQUIRE(refused);
  return Error(refused->code, refused->text);
}

Departure death_of(int rank, std::uint64_t generation = 1) {
  return {generation, rank, "b", "was killed by SIGKILL", Departure::Manner::died};
}

}  // namespace

TEST_CASE("a value that is set is found, by everybody") {
  Stage stage;
  CHECK(stage.set(1, "k", {7}) == Replies{{1, Done{1}}});
  CHECK(stage.wait(2, "k") == Replies{{2, Value{2, {7}}}});
  CHECK(stage.wait(1, "k") == Replies{{1, Value{3, {7}}}});
}

TEST_CASE("a value is set once and stays") {
  Stage stage;
  stage.set(1, "k", {7});
  CHECK(refusal(stage.set(2, "k", {8})) == Error(Errc::exists, "key k is set already"));
  CHECK(stage.wait(3, "k") == Replies{{3, Value{3, {7}}}});
}

TEST_CASE("who waits for a key is answered when it is set, in the order of asking") {
  Stage stage;
  CHECK(stage.wait(2, "k").empty());
  CHECK(stage.wait(1, "k").empty());
  CHECK(stage.wait(2, "other").empty());
  CHECK(stage.set(3, "k", {7}) == Replies{{3, Done{4}}, {2, Value{1, {7}}}, {1, Value{2, {7}}}});
  CHECK(stage.time_passes(2s).size() == 1);  // the other one is still unset
}

TEST_CASE("a wait that is over names the key, and is not answered again") {
  Stage stage;
  stage.wait(2, "worker.7", 100ms);
  CHECK(stage.time_passes(99ms).empty());
  CHECK(refusal(stage.time_passes(1ms)) == Error(Errc::timed_out, "nobody has set worker.7"));
  CHECK(stage.time_passes(1s).empty());
  CHECK(stage.set(1, "worker.7", {}) == Replies{{1, Done{2}}});
}

TEST_CASE("a gather is complete with the last rank, and comes in rank order") {
  rc::prop("in whatever order they come", [] {
    const auto size = *rc::gen::inRange<std::uint32_t>(1, 40);
    std::vector<std::uint32_t> ranks(size);
    std::iota(ranks.begin(), ranks.end(), 0u);
    auto engine = *rc::gen::noShrink(rc::gen::arbitrary<std::uint32_t>());
    for (auto i = ranks.size() - 1; i > 0; --i)
      std::swap(ranks[i], ranks[(engine = engine * 1664525 + 1013904223) % (i + 1)]);

    StoreCore core;
    Replies replies;
    for (const auto rank : ranks) {
      RC_ASSERT(replies.empty());
      (void)core.joined(rank);
      replies = core.on(rank, Gather{rank + 100u, "g", rank, size, Bytes(rank, 1), 1000}, {});
    }
    RC_ASSERT(replies.size() == size);
    Values expected;
    for (std::uint32_t rank = 0; rank < size; ++rank) expected.values.emplace_back(rank, 1);
    for (const auto& [client, reply] : replies) {
      expected.id = client + 100;
      RC_ASSERT(reply == Reply(expected));
    }
  });
}

TEST_CASE("a gather whose time is over names the ranks that did not come") {
  Stage stage;
  stage.gather(1, 1, 4);
  stage.gather(2, 2, 4);
  const auto replies = stage.time_passes(1s);
  REQUIRE(replies.size() == 2);
  CHECK(refusal({replies[0]}) == Error(Errc::timed_out, "g: rank 0, 3 of 4 did not come"));
  CHECK(refusal({replies[1]}).text() == refusal({replies[0]}).text());
}

TEST_CASE("a long list of missing ranks is one readable line") {
  Stage stage;
  stage.gather(1, 0, 512);
  CHECK(refusal(stage.time_passes(1s)).text() ==
        "g: rank 1, 2, 3, 4, 5, 6, 7, 8 and 503 more of 512 did not come");
}

TEST_CASE("a rank gives its value once, and again when the ranks meet again") {
  Stage stage;
  stage.gather(1, 0, 2);
  CHECK(refusal(stage.gather(2, 0, 2)) == Error(Errc::exists, "gather g: rank 0 was here already"));
  CHECK(stage.gather(2, 1, 2).size() == 2);
  CHECK(stage.gather(3, 1, 2).empty());
  CHECK(refusal(stage.gather(3, 1, 2)).code() == Errc::exists);
  CHECK(stage.gather(1, 0, 2).size() == 2);
}

TEST_CASE("ranks that do not agree how many they are, or are none, are refused") {
  Stage stage;
  stage.gather(1, 0, 2);
  CHECK(refusal(stage.gather(2, 1, 3)) ==
        Error(Errc::invalid_input, "gather g: rank 1 says there are 3 ranks, others said 2"));
  CHECK(refusal(stage.gather(2, 2, 2)).code() == Errc::invalid_input);
  CHECK(refusal(stage.gather(2, 0, 0)).code() == Errc::invalid_input);
  CHECK(refusal(stage.gather(2, 0, kRankLimit + 1)).code() == Errc::invalid_input);
  CHECK(stage.gather(2, 1, 2).size() == 2);  // the others are not disturbed
}

TEST_CASE("keys and values have limits") {
  Stage stage;
  CHECK(refusal(stage.set(1, "", {})).code() == Errc::too_large);
  CHECK(refusal(stage.set(1, std::string(kKeyLimit + 1, 'k'), {})).code() == Errc::too_large);
  CHECK(refusal(stage.wait(1, std::string(kKeyLimit + 1, 'k'))).code() == Errc::too_large);
  CHECK(refusal(stage.set(1, "k", Bytes(kValueLimit + 1))).code() == Errc::too_large);
  CHECK(refusal(stage.gather(1, 0, 1, Bytes(kValueLimit + 1))).code() == Errc::too_large);
  CHECK(stage.set(1, std::string(kKeyLimit, 'k'), Bytes(kValueLimit)).size() == 1);
}

TEST_CASE("a store that is full takes no more, but still gives what it has") {
  Stage stage;
  const Bytes big(kValueLimit);
  int taken = 0;
  while (std::holds_alternative<Done>(stage.set(1, std::to_string(taken), big)[0].second)) ++taken;
  CHECK(taken == kTotalLimit / (kValueLimit + kEntryBytes + 3));

  CHECK(refusal(stage.set(2, "one more", big)) == Error(Errc::too_large, "the store is full"));
  CHECK(refusal(stage.gather(2, 0, 2, big)).text() == "the store is full");
  CHECK(std::holds_alternative<Value>(stage.wait(2, "0")[0].second));
}

TEST_CASE("gathers that are complete do not fill the store") {
  Stage stage;
  for (int i = 0; i < 300; ++i) {
    const auto replies =
        stage.ask(1, Gather{++stage.id, "g" + std::to_string(i), 0, 1, Bytes(kValueLimit), 1000});
    REQUIRE(std::holds_alternative<Values>(replies[0].second));
  }
}

TEST_CASE("a client waits for so many things and no more, until one has come") {
  Stage stage;
  for (std::size_t i = 0; i < kHeldLimit; ++i)
    CHECK(stage.wait(1, "k" + std::to_string(i)).empty());
  CHECK(refusal(stage.wait(1, "more")).code() == Errc::too_large);
  CHECK(refusal(stage.gather(1, 0, 2)).code() == Errc::too_large);
  CHECK(stage.wait(2, "more").empty());  // others may
  stage.set(3, "k0", {});
  CHECK(stage.wait(1, "more").empty());
  CHECK(stage.time_passes(1s).size() == kHeldLimit + 1);
  CHECK(stage.wait(1, "again").empty());
}

TEST_CASE("a client that has left is not answered, and what it gave stays") {
  Stage stage;
  stage.set(1, "given", {1});
  stage.wait(1, "k");
  stage.gather(1, 0, 2);
  stage.core.left(1);
  CHECK(stage.set(2, "k", {}) == Replies{{2, Done{4}}});
  const auto replies = stage.gather(2, 1, 2);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].first == 2);
  CHECK(stage.wait(2, "given").size() == 1);
  CHECK(stage.wait(1, "given").empty());
  CHECK(stage.time_passes(1h).empty());
}

TEST_CASE("a departure is told to everybody, once") {
  Stage stage;
  const auto replies = stage.core.announce(death_of(2));
  CHECK(replies ==
        Replies{{1, Notice{death_of(2)}}, {2, Notice{death_of(2)}}, {3, Notice{death_of(2)}}});
  auto again = death_of(2);
  again.cause = "is said to have left";
  CHECK(stage.core.announce(again).empty());
  CHECK(stage.core.announce(death_of(2, 7)).size() == 3);  // in another generation
}

TEST_CASE("who departs without its value is not waited for, whatever its manner") {
  Stage stage;
  const auto manner = GENERATE(Departure::Manner::left, Departure::Manner::died);
  auto departure = death_of(2, 0);
  departure.manner = manner;
  stage.gather(1, 0, 3);
  const auto replies = stage.core.announce(departure);
  REQUIRE(replies.size() == 4);  // three are told, and one of them is answered
  CHECK(replies.back() ==
        std::pair(ClientId(1), Reply(Refused{1, Errc::peer_lost, departure.text()})));
  // Nor by who comes later.
  CHECK(refusal(stage.gather(2, 1, 3)) == Error(Errc::peer_lost, departure.text()));
  CHECK(stage.core.wake() == std::nullopt);
}

TEST_CASE("who departs after it gave its value, or belongs to no such gather, holds up nobody") {
  Stage stage;
  stage.gather(3, 2, 3);
  CHECK(stage.core.announce(death_of(2, 0)).size() == 3);
  CHECK(stage.core.announce(death_of(1, 7)).size() == 3);  // another generation's
  CHECK(stage.core.announce(death_of(9, 0)).size() == 3);  // no rank of these
  stage.gather(1, 0, 3);
  CHECK(stage.gather(2, 1, 3).size() == 3);
}

TEST_CASE("who joins late is told of all who went before; who has left is told nothing") {
  Stage stage;
  (void)stage.core.announce(death_of(2));
  (void)stage.core.announce(death_of(0));
  CHECK(stage.core.joined(9) == Replies{{9, Notice{death_of(2)}}, {9, Notice{death_of(0)}}});
  stage.core.left(1);
  for (const auto& [client, reply] : stage.core.announce(death_of(1))) CHECK(client != 1);
}

TEST_CASE("the store wakes at the earliest deadline, and sleeps when nobody waits") {
  Stage stage;
  CHECK(stage.core.wake() == std::nullopt);
  stage.wait(1, "k", 500ms);
  stage.gather(2, 0, 2, {}, 300ms);
  stage.wait(3, "l", 400ms);
  CHECK(stage.core.wake() == stage.now + 300ms);
  stage.gather(1, 1, 2, {}, 300ms);
  CHECK(stage.core.wake() == stage.now + 400ms);
  stage.core.left(3);
  CHECK(stage.core.wake() == stage.now + 500ms);
  stage.set(2, "k", {});
  CHECK(stage.core.wake() == std::nullopt);
}

TEST_CASE("whatever is asked, in whatever order, the store keeps its promises") {
  rc::prop("for every story", [] {
    const auto steps = *rc::gen::inRange<std::size_t>(0, 300);
    const auto script = *rc::gen::container<Bytes>(3 * steps, rc::gen::arbitrary<std::uint8_t>());
    const auto broken = StoreStory().play(script);
    if (broken) RC_FAIL(*broken);
  });
}

}  // namespace corro::rendezvous
