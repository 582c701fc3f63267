#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include "runtime/transport/failure.h"
#include "runtime/transport/message.h"

using namespace corro;
using namespace corro::runtime;
using Catch::Matchers::Contains;

namespace {

const Operation kSum{Collective::allreduce, DataType::f64, Reduction::average, 0, 12};
const Peer kMine{2, "b"}, kOther{1, "a"};

Header header() {
  return {.generation = 3, .sequence = 7, .step = 2, .operation = kSum, .bytes = 48};
}

std::string wrong(const Header& came) {
  return mismatch(header(), kMine, came, kOther).value_or("nothing");
}

}  // namespace

TEST_CASE("a header has a fixed size and comes back as it was") {
  rc::prop("round trip", [] {
    Header any;
    any.kind = *rc::gen::element(Header::Kind::data, Header::Kind::abort);
    any.generation = *rc::gen::arbitrary<std::uint64_t>();
    any.sequence = *rc::gen::arbitrary<std::uint64_t>();
    any.step = *rc::gen::arbitrary<std::uint32_t>();
    any.operation = {
        *rc::gen::element(Collective::allreduce, Collective::broadcast, Collective::barrier),
        *rc::gen::element(DataType::f32, DataType::f64),
        *rc::gen::element(Reduction::sum, Reduction::max), *rc::gen::arbitrary<std::int32_t>(),
        *rc::gen::arbitrary<std::uint64_t>()};
    any.bytes = *rc::gen::arbitrary<std::uint64_t>();
    const Bytes raw = encode(any);
    RC_ASSERT(raw.size() == kHeaderBytes);
    RC_ASSERT(*decode<Header>(raw) == any);
  });
}

TEST_CASE("bytes that are not a header are refused") {
  Bytes raw = encode(header());
  for (const std::size_t field : {0u, 21u, 22u, 23u}) {  // kind, collective, type, reduction
    Bytes broken = raw;
    broken[field] = 17;
    CHECK_FALSE(decode<Header>(broken));
  }
  raw.pop_back();
  CHECK_FALSE(decode<Header>(raw));
}

TEST_CASE("a header is the one in PROTOCOL.md") {
  const Bytes raw = encode(Header{.sequence = 1});
  CHECK(raw == Bytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
                     0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("operations read as they were called") {
  CHECK(kSum.text() == "allreduce(average of 12 f64)");
  CHECK(Operation{Collective::broadcast, DataType::f32, {}, 3, 9}.text() ==
        "broadcast(9 f32 from rank 3)");
  CHECK(Operation{}.text() == "barrier()");
}

TEST_CASE("what does not match is said with both sides' names") {
  CHECK(wrong(header()) == "nothing");

  Header came = header();
  came.generation = 2;
  CHECK(wrong(came) ==
        "rank 1 on host a is in generation 2 of the job, rank 2 on host b in generation 3");

  came = header();
  came.operation.count = 13;
  CHECK(
      wrong(came) ==
      "the ranks do not call the same: operation 7 of rank 1 on host a is allreduce(average of 13 "
      "f64), operation 7 of rank 2 on host b is allreduce(average of 12 f64)");

  came = header();
  came.step = 3;
  CHECK_THAT(wrong(came), Contains("rank 1 on host a sent 48 bytes for step 3"));
}

TEST_CASE("a failure gains a clause and keeps whom it blames") {
  const Failure failure(Errc::peer_lost, 4, "rank 4 on host d is gone");
  CHECK(failure.during("barrier()") ==
        Failure(Errc::peer_lost, 4, "barrier(): rank 4 on host d is gone"));
  CHECK(*decode<Failure>(encode(failure)) == failure);
  CHECK(Failure(Error(Errc::io, "no")).rank == -1);
}
