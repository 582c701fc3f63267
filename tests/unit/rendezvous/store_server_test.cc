#include "rendezvous/store_server.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "base/log.h"
#include "rendezvous/store_client.h"
#include "tests/support/print_error.h"

namespace corro::rendezvous {

using namespace store;
using namespace std::chrono_literals;

namespace {

// What must happen happens long before.
Deadline soon() {
  return Deadline::in(60s);
}

Departure death_of(int rank) {
  return {1, rank, "b", "was killed by SIGKILL", Departure::Manner::died};
}

// A store server on a loop in a thread of its own, as the launcher has it.
class Served {
 public:
  explicit Served(const StoreLimits& limits = {}) {
    auto started = StoreServer::start(loop_, {"127.0.0.1", 0}, key, limits);
    REQUIRE(started);
    server_ = std::move(*started);
    address = server_->address();
    thread_ = std::thread([this] { loop_.run(); });
  }

  ~Served() {
    stop();
    thread_.join();
  }

  void stop() {
    loop_.post([this] {
      server_.reset();
      loop_.stop();
    });
  }

  void announce(const Departure& departure) {
    loop_.post([this, departure] { server_->announce(departure); });
  }

  StoreClient client(std::uint64_t generation = 1) {
    auto connected = StoreClient::connect(address, key, generation, soon());
    REQUIRE(connected);
    return std::move(*connected);
  }

  // A connection that speaks by hand.
  Fd stranger() {
    auto socket = connect_to(address, soon());
    REQUIRE(socket);
    return std::move(*socket);
  }
  Fd proved() {
    Fd socket = stranger();
    REQUIRE(prove(socket.get(), Proof(Proof::Role::client, key, kPurpose), soon()));
    return socket;
  }

  bool serves() {
    auto one = client();
    const std::string fresh = "serves " + std::to_string(++asked_);
    return one.set(fresh, {1}, soon()) && one.wait_for(fresh, soon());
  }

  std::chrono::nanoseconds cpu_time() {
    clockid_t clock;
    timespec time;
    REQUIRE(::pthread_getcpuclockid(thread_.native_handle(), &clock) == 0);
    REQUIRE(::clock_gettime(clock, &time) == 0);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  const Key key = Key::random();
  Address address;

 private:
  Loop loop_;
  std::unique_ptr<StoreServer> server_;
  std::thread thread_;
  int asked_ = 0;
};

// While it lives, this process has so many descriptors free.
class FewDescriptors {
 public:
  explicit FewDescriptors(int free) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int lowest = Fd(::dup(0)).get();
    const rlimit few = {static_cast<rlim_t>(lowest + free), before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    log_from(LogLevel::error);  // the warnings are expected
  }
  ~FewDescriptors() {
    ::setrlimit(RLIMIT_NOFILE, &before_);
    log_from(LogLevel::warning);
  }

 private:
  rlimit before_{};
};

void send(const Fd& socket, ByteView bytes) {
  REQUIRE(write_all(socket.get(), bytes, soon()));
}

// All that comes until the other side hangs up.
Bytes read_to_end(const Fd& socket) {
  Bytes all, piece(4096);
  for (;;) {
    REQUIRE(wait_for_any({{socket.get(), true}}, soon()));
    const auto moved = read_some(socket.get(), piece);
    if (!moved || (moved->bytes == 0 && !moved->again)) return all;
    append(all, ByteView(piece).first(moved->bytes));
  }
}

Bytes read_bytes(const Fd& socket, std::size_t count) {
  Bytes all(count);
  for (std::size_t have = 0; have < count;) {
    REQUIRE(wait_for_any({{socket.get(), true}}, soon()));
    const auto moved = read_some(socket.get(), MutByteView(all).subspan(have));
    REQUIRE(moved);
    have += moved->bytes;
  }
  return all;
}

}  // namespace

TEST_CASE("what one client sets, another finds, even if it waited before") {
  Served store;
  auto a = store.client(), b = store.client();
  auto waiting = std::async(std::launch::async, [&] { return b.wait_for("k", soon()); });
  REQUIRE(a.set("k", {1, 2, 3}, soon()));
  const auto found = waiting.get();
  REQUIRE(found);
  CHECK(*found == Bytes{1, 2, 3});

  const auto again = a.set("k", {4}, soon());
  REQUIRE_FALSE(again);
  CHECK(again.error().code() == Errc::exists);
}

TEST_CASE("ranks in threads of their own gather each other's values, many times") {
  Served store;
  constexpr int kSize = 5;
  const auto worker = [&](int rank) {
    auto connected = StoreClient::connect(store.address, store.key, 1, soon());
    if (!connected) return false;
    for (int round = 0; round < 20; ++round) {
      const Bytes mine(static_cast<std::size_t>(rank + round), static_cast<std::uint8_t>(rank));
      const auto all =
          connected->gather("round " + std::to_string(round), rank, kSize, mine, soon());
      if (!all || all->size() != kSize) return false;
      for (std::size_t r = 0; r < kSize; ++r)
        if ((*all)[r] != Bytes(r + static_cast<std::size_t>(round), static_cast<std::uint8_t>(r)))
          return false;
    }
    return true;
  };
  std::vector<std::future<bool>> ranks;
  for (int rank = 0; rank < kSize; ++rank)
    ranks.push_back(std::async(std::launch::async, worker, rank));
  for (auto& rank : ranks) CHECK(rank.get());
}

TEST_CASE("a value of the largest size passes; a larger one is refused before it is sent") {
  Served store;
  auto a = store.client();
  const Bytes largest(kValueLimit, 7);
  REQUIRE(a.set("k", largest, soon()));
  const auto found = a.wait_for("k", soon());
  REQUIRE(found);
  CHECK(*found == largest);

  const auto refused = a.set("l", Bytes(kValueLimit + 1), soon());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == Errc::too_large);
  CHECK(a.wait_for("k", soon()));
}

TEST_CASE("a wait whose time is over names the key; a gather names the missing ranks") {
  Served store;
  auto a = store.client();
  const auto waited = a.wait_for("address of 3", Deadline::in(1ms));
  REQUIRE_FALSE(waited);
  CHECK(waited.error() == Error(Errc::timed_out, "nobody has set address of 3"));
  const auto gathered = a.gather("ports", 1, 3, {}, Deadline::in(1ms));
  REQUIRE_FALSE(gathered);
  CHECK(gathered.error() == Error(Errc::timed_out, "ports: rank 0, 2 of 3 did not come"));
}

TEST_CASE("a client with another key is refused, and the others are served as before") {
  Served store;
  const auto refused = StoreClient::connect(store.address, Key::random(), 1, soon());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == Errc::refused);
  CHECK(refused.error().text() == "reaching the job's store at " + store.address.text() +
                                      ": the other side does not know this job's key");
  CHECK(store.serves());
}

TEST_CASE("a proof for another service is refused") {
  Served store;
  const Fd socket = store.stranger();
  const auto proved = prove(socket.get(), Proof(Proof::Role::client, store.key, "ring"), soon());
  REQUIRE_FALSE(proved);
  CHECK(proved.error().code() == Errc::refused);
}

TEST_CASE("garbage instead of a proof is hung up on without a word") {
  Served store;
  const Fd socket = store.stranger();
  send(socket, Bytes(1000, 'x'));
  CHECK(read_to_end(socket).empty());
  CHECK(store.serves());
}

TEST_CASE("a request in the place of a proof changes nothing") {
  Served store;
  const Fd socket = store.stranger();
  send(socket, encode_frame(Request(Set{1, "k", Bytes(100)}), 1));
  CHECK(read_to_end(socket).empty());
  CHECK(store.client().set("k", {}, soon()));  // nobody had
}

TEST_CASE("a recorded proof, played to the server again, is refused") {
  Served store;
  const Fd first = store.stranger();
  Proof proof(Proof::Role::client, store.key, kPurpose);
  const Bytes hello = proof.opening();
  send(first, hello);
  Bytes finish;
  REQUIRE(proof.feed(read_bytes(first, 64), finish));

  const Fd second = store.stranger();
  send(second, hello);
  read_bytes(second, 64);
  append(finish, encode_frame(Request(Set{1, "k", {}}), 1));
  send(second, finish);
  CHECK(read_to_end(second).empty());
  CHECK(store.client().set("k", {}, soon()));
}

TEST_CASE("whoever says nothing is dropped after the time for its proof, and harms nobody") {
  Served store({.proof_time = 300ms});
  const Fd silent = store.stranger(), slow = store.stranger();
  auto faithful = store.client();
  send(slow, Bytes{'k', 'o', 'l', 'o'});
  CHECK(read_to_end(silent).empty());
  CHECK(read_to_end(slow).empty());
  CHECK(faithful.set("k", {}, soon()));  // its own time has been over for long
}

TEST_CASE("four gigabytes announced after the proof end the connection and not the server") {
  Served store;
  const Fd socket = store.proved();
  send(socket, Bytes{0xFF, 0xFF, 0xFF, 0xFF});
  CHECK(read_to_end(socket).empty());
  CHECK(store.serves());
}

TEST_CASE("a kind of request that the server does not know ends the connection") {
  Served store;
  const Fd socket = store.proved();
  Bytes frame;
  append_frame(frame, {999, 1, {}});
  send(socket, frame);
  CHECK(read_to_end(socket).empty());
  CHECK(store.serves());
}

TEST_CASE("over the limit of connections a new one is hung up on at once") {
  Served store({.connections = 1});
  auto only = store.client();
  CHECK(read_to_end(store.stranger()).empty());
  CHECK(only.set("k", {}, soon()));
}

TEST_CASE("a client that asks and never reads is dropped") {
  Served store({.backlog = 4 << 20});
  REQUIRE(store.client().set("big", Bytes(kValueLimit), soon()));
  const Fd greedy = store.proved();
  std::uint64_t id = 0;
  while (write_all(greedy.get(), encode_frame(Request(WaitFor{++id, "big", 0}), id), soon()))
    REQUIRE(id < 100'000);
  CHECK(store.serves());
}

TEST_CASE("without free descriptors the server waits calmly, and serves when there are some") {
  Served store;
  REQUIRE(store.serves());
  std::optional<FewDescriptors> few(std::in_place, 1);
  const Fd socket = store.stranger();  // has the last one
  send(socket, Proof(Proof::Role::client, store.key, kPurpose).opening());

  const auto cpu_before = store.cpu_time();
  const auto answered = wait_for_any({{socket.get(), true}}, Deadline::in(100ms));
  const auto cpu_spent = store.cpu_time() - cpu_before;
  few.reset();
  CHECK_FALSE(answered);
  CHECK(cpu_spent < 10ms);
  CHECK(read_bytes(socket, 64).size() == 64);
  CHECK(store.serves());
}

TEST_CASE("a server may end while clients come and go") {
  for (int i = 0; i < 20; ++i) {
    Served store;
    { const auto gone = store.proved(); }
    { const Fd never_proved = store.stranger(); }
    store.stop();
  }
  SUCCEED();
}

TEST_CASE("a death ends every wait, and says who died, where and how") {
  Served store;
  auto a = store.client(), b = store.client();
  auto waits = std::async(std::launch::async, [&] { return a.wait_for("k", soon()); });
  auto gathers = std::async(std::launch::async, [&] { return b.gather("g", 0, 3, {}, soon()); });
  store.announce(death_of(2));

  const Error expected(Errc::peer_lost, "rank 2 on host b was killed by SIGKILL");
  const auto waited = waits.get();
  REQUIRE_FALSE(waited);
  CHECK(waited.error() == expected);
  const auto gathered = gathers.get();
  REQUIRE_FALSE(gathered);
  CHECK(gathered.error() == expected);
  CHECK(a.culprit() == death_of(2));

  auto late = store.client();
  const auto too_late = late.wait_for("k", soon());
  REQUIRE_FALSE(too_late);
  CHECK(too_late.error() == expected);
}

TEST_CASE("when the store is gone, who waits for it is told so at once") {
  Served store;
  auto a = store.client();
  REQUIRE(a.set("k", {}, soon()));
  auto waits = std::async(std::launch::async, [&] { return a.wait_for("never", soon()); });
  store.stop();
  const auto waited = waits.get();
  REQUIRE_FALSE(waited);
  CHECK(waited.error() == Error(Errc::closed, "the job's store is gone: horovodrun has ended"));
}

}  // namespace corro::rendezvous
