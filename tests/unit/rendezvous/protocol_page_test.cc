#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/proof.h"
#include "rendezvous/messages.h"
#include "rendezvous/store_server.h"

namespace corro {

using namespace store;

namespace {

// rendezvous/PROTOCOL.md, each run of blanks as one.
std::string page() {
  const std::filesystem::path top = CORRO_TOP;
  std::ifstream file(top / "rendezvous/PROTOCOL.md");
  std::string text, word;
  while (file >> word) text += word + " ";
  REQUIRE_FALSE(text.empty());
  return text;
}

std::string spaced_hex(ByteView bytes) {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x} ", byte);
  return text;
}

// 32 bytes that count up from the first.
std::array<std::uint8_t, 32> counting_from(std::uint8_t first) {
  std::array<std::uint8_t, 32> out;
  for (auto& byte : out) byte = first++;
  return out;
}

}  // namespace

TEST_CASE("the worked example of PROTOCOL.md is, byte for byte, what is sent") {
  const std::string text = page();
  const auto is_there = [&](ByteView bytes) {
    INFO(spaced_hex(bytes));
    CHECK(text.find(spaced_hex(bytes)) != text.npos);
  };

  const Key key{counting_from(0)};
  Proof client(Proof::Role::client, key, kPurpose, counting_from(0xa0));
  Proof server(Proof::Role::server, key, kPurpose, counting_from(0xc0));
  const Bytes hello = client.opening();
  Bytes answer, finish, nothing;
  REQUIRE(server.feed(hello, answer));
  REQUIRE(client.feed(answer, finish));
  REQUIRE(server.feed(finish, nothing));
  REQUIRE((client.done() && server.done()));
  is_there(hello);
  is_there(answer);
  is_there(finish);

  is_there(encode_frame(Request(Set{1, "k", bytes_of("hi")}), 1));
  is_there(encode_frame(Reply(Done{1}), 1));
  is_there(encode_frame(Request(WaitFor{2, "k", 5000}), 2));
  is_there(encode_frame(Reply(Value{2, bytes_of("hi")}), 2));
  is_there(encode_frame(
      Reply(Notice{{1, 3, "b", "was killed by SIGKILL", Departure::Manner::died}}), 3));
}

TEST_CASE("the limits that PROTOCOL.md names are those of the code") {
  const std::string text = page();
  const auto says = [&](const std::string& what, std::size_t limit) {
    INFO(what << " " << limit);
    CHECK(text.find(fmt::format("| {} | {} ", what, limit)) != text.npos);
  };
  says("key, bytes", kKeyLimit);
  says("value, bytes", kValueLimit);
  says("all values of a store, bytes", kTotalLimit);
  says("cost of an entry besides key and value, bytes", kEntryBytes);
  says("ranks of a gather", kRankLimit);
  says("held requests of one client", kHeldLimit);
  says("body of a frame to the server, bytes", kRequestLimit);
  says("body of a frame to a client, bytes", kReplyLimit);
  says("replies that a client has asked for and not read, bytes", StoreLimits().backlog);
}

}  // namespace corro
