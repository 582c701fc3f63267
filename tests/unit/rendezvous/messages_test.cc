#include "rendezvous/messages.h"

#include <catch2/catch.hpp>

namespace corro::rendezvous {

using namespace store;

namespace {

template <class Protocol>
void comes_back(const Protocol& message) {
  const Bytes bytes = encode_frame(message, 1);
  FrameReader reader(kRequestLimit);
  const auto taken = reader.feed(bytes, [&](const Frame& frame) -> Result<Unit> {
    const auto back = decode_frame<Protocol>(frame);
    CHECK((back && *back == message));
    return Unit{};
  });
  CHECK(taken);
}

}  // namespace

TEST_CASE("every message of the store comes back as it was sent") {
  const Departure departure{3, 2, "b", "exited with code 3", Departure::Manner::left};
  for (const Request& request : {Request(Set{1, "k", {1}}), Request(WaitFor{2, "k", 3}),
                                 Request(Gather{3, "g", 1, 2, {7}, 4})})
    comes_back(request);
  for (const Reply& reply : {Reply(Done{1}), Reply(Value{2, {1}}), Reply(Values{3, {{}, {1, 2}}}),
                             Reply(Refused{4, Errc::exists, "why"}), Reply(Notice{departure})})
    comes_back(reply);
}

TEST_CASE("the largest request fits in the largest frame, and so does the largest answer") {
  const Gather gather{1, std::string(kKeyLimit, 'k'), 0, 1, Bytes(kValueLimit), 1};
  CHECK(encode(gather).size() <= kRequestLimit);
  // A gathered value of n bytes costs the store n and kEntryBytes, and the answer n and four.
  STATIC_REQUIRE(kEntryBytes >= sizeof(std::uint32_t));
  STATIC_REQUIRE(kReplyLimit >= kTotalLimit + 64);
}

}  // namespace corro::rendezvous
