#include "rendezvous/store_client.h"

#include <catch2/catch.hpp>
#include <future>
#include <thread>

namespace corro::rendezvous {

using namespace store;
using namespace std::chrono_literals;

namespace {

// What must happen happens long before.
Deadline soon() {
  return Deadline::in(60s);
}

Departure end_of(int rank, Departure::Manner manner, std::uint64_t generation = 1) {
  return {generation, rank, "b", "ended", manner};
}
Departure death_of(int rank, std::uint64_t generation = 1) {
  return end_of(rank, Departure::Manner::died, generation);
}

// A store that says what the test tells it to, to its only client.
struct Scripted {
  Scripted() {
    auto listening = listen_on({"127.0.0.1", 0});
    REQUIRE(listening);
    const auto address = local_address(listening->get());
    const Key key = Key::random();
    auto connecting = std::async(std::launch::async,
                                 [&] { return StoreClient::connect(*address, key, 1, soon()); });
    REQUIRE(wait_for_any({{listening->get(), true}}, soon()));
    auto accepted = accept_from(listening->get());
    REQUIRE(accepted);
    socket = std::move(*accepted);
    REQUIRE(prove(socket.get(), Proof(Proof::Role::server, key, kPurpose), soon()));
    auto connected = connecting.get();
    REQUIRE(connected);
    client.emplace(std::move(*connected));
  }

  void says(const Reply& reply) {
    REQUIRE(write_all(socket.get(), encode_frame(reply, ++seq), soon()));
  }

  // As much as it takes for the client to have it all before it.
  std::vector<Departure> news() {
    REQUIRE(wait_for_any({{client->notice_fd(), true}}, soon()));
    auto departures = client->take_departures();
    REQUIRE(departures);
    return std::move(*departures);
  }

  Fd socket;
  std::optional<StoreClient> client;
  std::uint64_t seq = 0;
};

}  // namespace

TEST_CASE("a departure is news once, and can be waited for by its descriptor") {
  Scripted store;
  CHECK(store.client->take_departures()->empty());
  store.says(Notice{death_of(2)});
  CHECK(store.news() == std::vector{death_of(2)});
  CHECK(store.client->take_departures()->empty());
  CHECK(store.client->culprit() == death_of(2));
}

TEST_CASE("the first death stays the first") {
  Scripted store;
  store.says(Notice{death_of(2)});
  store.news();
  store.says(Notice{death_of(1)});
  store.news();
  CHECK(store.client->culprit() == death_of(2));
}

TEST_CASE("a worker of another generation is none of our business") {
  Scripted store;
  store.says(Notice{death_of(2, 0)});
  CHECK(store.news().empty());
  CHECK(store.client->culprit() == std::nullopt);
}

TEST_CASE("a worker that left in good order is news, but ends no wait") {
  Scripted store;
  const auto left = end_of(2, Departure::Manner::left);
  store.says(Notice{left});
  store.says(Value{1, {7}});
  const auto value = store.client->wait_for("k", soon());
  REQUIRE(value);
  CHECK(*value == Bytes{7});
  CHECK(*store.client->take_departures() == std::vector{left});
}

TEST_CASE("an answer that comes after its request was given up is not taken for the next one") {
  Scripted store;
  store.says(Notice{death_of(2)});
  const auto given_up = store.client->wait_for("k", soon());  // request 1
  REQUIRE_FALSE(given_up);
  store.says(Value{1, {7}});
  store.news();
  const auto next = store.client->wait_for("l", soon());
  REQUIRE_FALSE(next);
  CHECK(next.error().code() == Errc::peer_lost);
}

TEST_CASE("the last news of a store that ends is heard before its end") {
  Scripted store;
  store.says(Notice{death_of(2)});
  store.socket.reset();
  CHECK(store.news() == std::vector{death_of(2)});
  const auto after = store.client->take_departures();
  REQUIRE_FALSE(after);
  CHECK(after.error().code() == Errc::closed);
}

TEST_CASE("whoever asks a store that has ended is told of the death that it left as news") {
  Scripted store;
  store.says(Notice{death_of(2)});
  store.socket.reset();
  (void)store.client->set("k", {}, soon());  // may still be written, and is answered by a reset
  const auto asked = store.client->set("l", {}, soon());
  REQUIRE_FALSE(asked);
  CHECK(asked.error().code() == Errc::peer_lost);
}

TEST_CASE("an answer of the wrong kind is malformed") {
  Scripted store;
  store.says(Done{1});
  const auto value = store.client->wait_for("k", soon());
  REQUIRE_FALSE(value);
  CHECK(value.error().code() == Errc::malformed);
}

TEST_CASE("an announced length over the limit ends the wait") {
  Scripted store;
  REQUIRE(write_all(store.socket.get(), Bytes{0xFF, 0xFF, 0xFF, 0xFF}, soon()));
  const auto value = store.client->wait_for("k", soon());
  REQUIRE_FALSE(value);
  CHECK(value.error().code() == Errc::too_large);
}

TEST_CASE("a departure reads as a sentence") {
  const Departure killed{1, 2, "b", "was killed by SIGKILL", Departure::Manner::died};
  CHECK(killed.text() == "rank 2 on host b was killed by SIGKILL");
}

}  // namespace corro::rendezvous
