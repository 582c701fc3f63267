#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include "runtime/transport/message.h"

using namespace corro;
using namespace corro::runtime;
using Catch::Matchers::Contains;

namespace {

const Peer kMine{2, "b"}, kOther{1, "a"};

Header header() {
  Header made;
  made.tag = {.generation = 3, .group = 4, .sequence = 7, .step = 2};
  made.digest = 5;
  made.bytes = 48;
  return made;
}

std::string wrong(const Header& came, std::string_view description = "") {
  const auto failure =
      mismatch(kMine, {header(), "allreduce(average of 12 f64)"}, kOther, came, description);
  return failure ? failure->text : "nothing";
}

}  // namespace

TEST_CASE("a header has a fixed size and comes back as it was") {
  rc::prop("round trip", [] {
    Header any;
    any.kind = *rc::gen::element(Header::Kind::data, Header::Kind::abort);
    any.tag = {*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>(),
               *rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint32_t>()};
    any.digest = *rc::gen::arbitrary<std::uint64_t>();
    any.description_bytes = *rc::gen::arbitrary<std::uint16_t>();
    any.bytes = *rc::gen::arbitrary<std::uint64_t>();
    const Bytes raw = encode(any);
    RC_ASSERT(raw.size() == kHeaderBytes);
    RC_ASSERT(*decode<Header>(raw) == any);
  });
}

TEST_CASE("bytes that are not a header are refused") {
  Bytes raw = encode(header());
  Bytes broken = raw;
  broken[0] = 17;  // the kind
  CHECK_FALSE(decode<Header>(broken));
  raw.pop_back();
  CHECK_FALSE(decode<Header>(raw));
}

TEST_CASE("a header is the one in PROTOCOL.md") {
  Header first;
  first.tag.sequence = 1;
  first.description_bytes = 9;
  Bytes wanted(kHeaderBytes);
  wanted[17] = 1;
  wanted[37] = 9;
  CHECK(encode(first) == wanted);
}

TEST_CASE("what does not match is said with both sides' names") {
  CHECK(wrong(header()) == "nothing");

  Header came = header();
  came.tag.generation = 2;
  CHECK(wrong(came) ==
        "rank 1 on host a is in generation 2 of the job, rank 2 on host b in generation 3");

  came = header();
  came.digest = 6;
  CHECK_THAT(wrong(came, "barrier()"), Contains("rank 1 on host a is barrier()"));
  CHECK_THAT(wrong(came, "barrier()"),
             Contains("rank 2 on host b is allreduce(average of 12 f64)"));

  came = header();
  came.tag.step = 3;
  CHECK_THAT(wrong(came), Contains("rank 1 on host a sent 48 bytes for step 3"));
}

TEST_CASE("a failure gains a clause and keeps whom it blames") {
  const Failure failure(Errc::peer_lost, 4, "rank 4 on host d is gone");
  CHECK(failure.during("barrier()") ==
        Failure(Errc::peer_lost, 4, "barrier(): rank 4 on host d is gone"));
  CHECK(*decode<Failure>(encode(failure)) == failure);
  CHECK(Failure(Error(Errc::io, "no")).rank == -1);
}
