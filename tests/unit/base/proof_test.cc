#include "base/proof.h"

#include <rapidcheck/catch.h>

#include <optional>

namespace corro {

namespace {

const Key kKey = Key::random();
const Key kOtherKey = Key::random();

Proof client(const Key& key = kKey, std::string_view purpose = "test") {
  return Proof(Proof::Role::client, key, purpose);
}
Proof server(const Key& key = kKey, std::string_view purpose = "test") {
  return Proof(Proof::Role::server, key, purpose);
}

// All that was said, by both.
struct Conversation {
  Bytes hello, answer, finish;
  bool client_done = false, server_done = false;
  std::optional<Error> client_refused, server_refused;
};

Bytes tell(Proof& to, ByteView message, std::optional<Error>& refused) {
  Bytes reply;
  const auto used = to.feed(message, reply);
  if (!used) refused = used.error();
  return reply;
}

Conversation talk(Proof a, Proof b) {
  Conversation c;
  c.hello = a.opening();
  c.answer = tell(b, c.hello, c.server_refused);
  if (!c.server_refused) c.finish = tell(a, c.answer, c.client_refused);
  if (!c.client_refused) tell(b, c.finish, c.server_refused);
  c.client_done = a.done();
  c.server_done = b.done();
  return c;
}

bool flip_is_refused(Proof to, Bytes message, std::size_t bit) {
  message[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
  std::optional<Error> refused;
  tell(to, message, refused);
  return refused && refused->code() == Errc::refused && !to.done();
}

}  // namespace

TEST_CASE("two who know the same key convince each other") {
  const Conversation c = talk(client(), server());
  CHECK((c.client_done && c.server_done));
  CHECK(c.hello.size() == 41);
  CHECK(c.answer.size() == 64);
  CHECK(c.finish.size() == 32);
  CHECK(server().opening().empty());
}

TEST_CASE("a client with another key refuses the server, and says nothing more") {
  const Conversation c = talk(client(kOtherKey), server());
  REQUIRE(c.client_refused);
  CHECK(c.client_refused->code() == Errc::refused);
  CHECK(c.finish.empty());
  CHECK_FALSE((c.client_done || c.server_done));
}

TEST_CASE("a server refuses a client that goes on in spite of another key") {
  Proof honest = server();
  std::optional<Error> refused;
  tell(honest, client(kOtherKey).opening(), refused);
  REQUIRE_FALSE(refused);
  tell(honest, Bytes(32, 0x42), refused);
  REQUIRE(refused);
  CHECK(refused->code() == Errc::refused);
  CHECK_FALSE(honest.done());
}

TEST_CASE("a proof for one service is none for another") {
  const Conversation c = talk(client(kKey, "test"), server(kKey, "text"));
  CHECK(c.client_refused);
  CHECK_FALSE((c.client_done || c.server_done));
}

TEST_CASE("another version is refused, and both versions are named") {
  Bytes hello = client().opening();
  hello[5] = 9;
  Proof to = server();
  std::optional<Error> refused;
  CHECK(tell(to, hello, refused).empty());
  REQUIRE(refused);
  CHECK(refused->text() == "the other side speaks version 9 of the protocol, this one 1");
}

TEST_CASE("whoever does not speak the protocol at all gets no answer") {
  Proof to = server();
  std::optional<Error> refused;
  CHECK(tell(to, view_of("GET / HTTP/1.1\r\nHost: 127.0.0.1:12345\r\n\r\n"), refused).empty());
  REQUIRE(refused);
  CHECK(refused->code() == Errc::refused);
}

TEST_CASE("a client's recorded words do not convince a new server") {
  const Conversation recorded = talk(client(), server());
  Proof fresh = server();
  std::optional<Error> refused;
  tell(fresh, recorded.hello, refused);
  tell(fresh, recorded.finish, refused);
  CHECK(refused);
  CHECK_FALSE(fresh.done());
}

TEST_CASE("a server's recorded words do not convince a new client") {
  const Conversation recorded = talk(client(), server());
  Proof fresh = client();
  std::optional<Error> refused;
  CHECK(tell(fresh, recorded.answer, refused).empty());
  CHECK(refused);
  CHECK_FALSE(fresh.done());
}

TEST_CASE("a server's own proof, sent back to it, does not convince it") {
  Proof to = server();
  std::optional<Error> refused;
  const Bytes answer = tell(to, client().opening(), refused);
  tell(to, ByteView(answer).last(32), refused);
  CHECK(refused);
  CHECK_FALSE(to.done());
}

// The attacker makes two servers prove things to each other.
TEST_CASE("a server's proof does not serve as a client's to another server") {
  Proof a = server(), b = server();
  std::optional<Error> refused;
  const Bytes of_a = tell(a, client().opening(), refused);
  Bytes hello = client().opening();
  std::copy_n(of_a.begin(), 32, hello.begin() + 9);
  const Bytes of_b = tell(b, hello, refused);
  tell(a, ByteView(of_b).last(32), refused);
  CHECK(refused);
  CHECK_FALSE(a.done());
}

TEST_CASE("a proof that is cut off anywhere is not done, and knows what is missing") {
  for (std::size_t cut = 0; cut < 64; ++cut) {
    Proof c = client();
    const Bytes answer(cut);
    std::optional<Error> refused;
    CHECK(tell(c, answer, refused).empty());
    CHECK_FALSE((refused || c.done()));
    CHECK(c.awaited() == 64 - cut);
  }
  for (std::size_t cut = 0; cut < 41 + 32; ++cut) {
    Proof s = server();
    const Bytes hello = client().opening();
    std::optional<Error> refused;
    tell(s, ByteView(hello).first(std::min<std::size_t>(cut, 41)), refused);
    if (cut > 41) tell(s, Bytes(cut - 41), refused);
    CHECK_FALSE((refused || s.done()));
    CHECK(s.awaited() == (cut < 41 ? 41 - cut : 73 - cut));
  }
}

TEST_CASE("one changed bit anywhere is refused") {
  const Nonce nonce = random_nonce();
  const Proof c(Proof::Role::client, kKey, "test", nonce);
  const Proof s(Proof::Role::server, kKey, "test", nonce);
  const Conversation good = talk(c, s);
  REQUIRE((good.client_done && good.server_done));

  for (std::size_t bit = 0; bit < 64 * 8; ++bit) CHECK(flip_is_refused(c, good.answer, bit));

  Proof waiting = s;
  std::optional<Error> refused;
  tell(waiting, good.hello, refused);
  for (std::size_t bit = 0; bit < 32 * 8; ++bit) CHECK(flip_is_refused(waiting, good.finish, bit));

  for (std::size_t bit = 0; bit < 9 * 8; ++bit) CHECK(flip_is_refused(s, good.hello, bit));
}

// A nonce has no wrong value, so the server cannot tell; the client can.
TEST_CASE("one changed bit in the nonce that a server gets is refused by the client") {
  const Proof c = client();
  for (std::size_t bit = 9 * 8; bit < 41 * 8; ++bit) {
    Bytes hello = c.opening();
    hello[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    Proof to = server(), from = c;
    std::optional<Error> refused;
    tell(from, tell(to, hello, refused), refused);
    CHECK(refused);
    CHECK_FALSE((from.done() || to.done()));
  }
}

TEST_CASE("however the bytes are cut, the proof is the same, and takes none that follow it") {
  rc::prop("for every cut and whatever follows", [](const Bytes& after) {
    const Nonce nonce = random_nonce();
    const Proof s(Proof::Role::server, kKey, "test", nonce);
    Proof c = client();
    Proof probe = s;
    Bytes stream = c.opening(), answer;
    RC_ASSERT(bool(probe.feed(stream, answer)));
    RC_ASSERT(bool(c.feed(answer, stream)));
    append(stream, after);

    Proof cut = s;
    Bytes replies;
    std::size_t used = 0;
    while (!cut.done()) {
      const auto n = *rc::gen::inRange<std::size_t>(1, stream.size() - used + 1);
      const auto taken = cut.feed(ByteView(stream).subspan(used, n), replies);
      RC_ASSERT(bool(taken));
      used += *taken;
    }
    RC_ASSERT(used == stream.size() - after.size());
    RC_ASSERT(replies == answer);
    RC_ASSERT(cut.awaited() == 0u);
  });
}

TEST_CASE("a proof that was refused stays refused") {
  Proof to = server();
  std::optional<Error> refused, again;
  tell(to, Bytes(41), refused);
  REQUIRE(refused);
  CHECK(tell(to, client().opening(), again).empty());
  CHECK(again);
}

}  // namespace corro
