#include "base/socket.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <future>

#include "base/proof.h"
#include "tests/unit/base/connected_pair.h"

namespace corro {

namespace {

using namespace std::chrono_literals;

Proof proof(Proof::Role role, const Key& key) {
  return Proof(role, key, "test");
}

Bytes read_now(int fd) {
  Bytes out(100);
  const auto moved = read_some(fd, out);
  REQUIRE(moved);
  out.resize(moved->bytes);
  return out;
}

}  // namespace

TEST_CASE("who listens on port 0 gets a port that others can reach") {
  const auto listener = listen_on({"127.0.0.1", 0});
  REQUIRE(listener);
  const auto address = local_address(listener->get());
  REQUIRE(address);
  CHECK(address->port != 0);

  const auto none = accept_from(listener->get());
  REQUIRE(none);
  CHECK_FALSE(*none);

  const auto caller = connect_to(*address, Deadline::in(5s));
  REQUIRE(caller);
  REQUIRE(wait_for_any({{listener->get(), true}}, Deadline::in(5s)));
  const auto called = accept_from(listener->get());
  REQUIRE(called);
  CHECK(*called);
}

TEST_CASE("a port where nobody listens is an error that names it") {
  auto listener = listen_on({"127.0.0.1", 0});
  REQUIRE(listener);
  const auto address = local_address(listener->get());
  listener->reset();
  const auto caller = connect_to(*address, Deadline::in(5s));
  REQUIRE_FALSE(caller);
  CHECK(caller.error().text() == "connecting to " + address->text() + ": Connection refused");
}

TEST_CASE("waiting ends at the deadline") {
  const Pair pair = connected_pair();
  const auto waited = wait_for_any({{pair.a.get(), true}}, Deadline::in(1ms));
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code() == Errc::timed_out);
}

TEST_CASE("writing more than the other side takes ends at the deadline") {
  const Pair pair = connected_pair();
  const auto written = write_all(pair.a.get(), Bytes(8 << 20), Deadline::in(1ms));
  REQUIRE_FALSE(written);
  CHECK(written.error().code() == Errc::timed_out);
}

TEST_CASE("writing to one who is gone is an error and no signal") {
  Pair pair = connected_pair();
  pair.b.reset();
  const auto written = write_all(pair.a.get(), Bytes(1), Deadline::in(5s));
  REQUIRE_FALSE(written);
  CHECK(written.error().code() == Errc::closed);
}

TEST_CASE("a proof takes its own bytes from the socket and leaves the next ones") {
  const Pair pair = connected_pair();
  const Key key = Key::random();
  auto client = std::async(std::launch::async, [&] {
    const auto proved = prove(pair.a.get(), proof(Proof::Role::client, key), Deadline::in(5s));
    return proved && write_all(pair.a.get(), view_of("what follows"), Deadline::in(5s));
  });
  REQUIRE(prove(pair.b.get(), proof(Proof::Role::server, key), Deadline::in(5s)));
  REQUIRE(client.get());
  CHECK(text_of(read_now(pair.b.get())) == "what follows");
}

TEST_CASE("a proof with another key fails on both sides") {
  Pair pair = connected_pair();
  auto client = std::async(std::launch::async, [&] {
    auto proved = prove(pair.a.get(), proof(Proof::Role::client, Key::random()), Deadline::in(5s));
    pair.a.reset();
    return proved;
  });
  const auto server =
      prove(pair.b.get(), proof(Proof::Role::server, Key::random()), Deadline::in(5s));
  REQUIRE_FALSE(server);
  CHECK(server.error().code() == Errc::refused);
  const auto refused = client.get();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == Errc::refused);
}

TEST_CASE("a proof with one who says nothing ends at the deadline") {
  const Pair pair = connected_pair();
  const auto proved =
      prove(pair.a.get(), proof(Proof::Role::server, Key::random()), Deadline::in(1ms));
  REQUIRE_FALSE(proved);
  CHECK(proved.error().code() == Errc::timed_out);
}

}  // namespace corro
