#include <catch2/catch.hpp>

#include "runtime/wiring/handshake.h"
#include "runtime/wiring/wiring.h"
#include "tests/support/local_job.h"

using namespace corro;
using namespace corro::runtime;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using rendezvous::Departure;
using rendezvous::StoreClient;

namespace {

const std::vector<Peer> kRoster = {{0, "h0"}, {1, "h1"}};

// Rank 1 of two wires itself on a thread.  Rank 0 is the test: it has met rank 1 in the store, and
// knows where that waits for its call.
class Caller {
 public:
  explicit Caller(Duration patience = 10s) : job_(2) {
    wiring_ = std::async(std::launch::async, [this, patience]() -> Outcome<Peer> {
      auto store = StoreClient::connect(job_.store(), job_.key(), 0, Deadline::in(patience));
      const Seat seat{{1, "h1"}, 2, 0, job_.key(), "127.0.0.1", {}};
      auto wiring = Wiring::meet(seat, "m1", *store, Deadline::in(patience));
      if (!wiring) return wiring.error();
      TcpLinks links(**wiring, kGroup, {0, 1});
      const auto connected =
          connect_ring(links, **wiring, kRoster, 1, *store, Deadline::in(patience));
      if (!connected) return connected.error();
      return (*links.link(0))->peer();
    });
    auto store = StoreClient::connect(job_.store(), job_.key(), 0, Deadline::in(10s));
    const auto offers = store->gather("offers/0", 0, 2, encode(Offer{"127.0.0.1:1", "h0", "m0", 5}),
                                      Deadline::in(10s));
    address_ = *Address::parse(decode<Offer>((*offers)[1])->address);
    session_ = 0xcbf29ce484222325;
    for (const Bytes& offer : *offers)
      for (const std::uint8_t byte : offer) session_ = (session_ ^ byte) * 0x100000001b3;
  }

  static constexpr std::uint64_t kGroup = 42;
  Hello hello() const { return {0, session_, kGroup, 0, 1}; }
  LocalJob& job() { return job_; }
  Fd connection() { return std::move(*connect_to(address_, Deadline::in(10s))); }
  Outcome<Peer> outcome() { return wiring_.get(); }

  // Speaks as a rank would, and gives what it heard, or why not.
  Result<Hello> introduce(const Key& key, const Hello& hello) {
    Handshake handshake(connection(), key, hello);
    while (!handshake.done()) {
      if (auto moved = handshake.progress(); !moved) return moved.error();
      if (handshake.done()) break;
      if (auto ready = wait_for_any({handshake.interest()}, Deadline::in(10s)); !ready)
        return ready.error();
    }
    kept_.push_back(handshake.take_socket());
    return *handshake.theirs();
  }

 private:
  LocalJob job_;
  std::future<Outcome<Peer>> wiring_;
  Address address_;
  std::uint64_t session_ = 0;
  std::vector<Fd> kept_;
};

}  // namespace

TEST_CASE("neighbours find each other through the store and say who they are") {
  Caller caller;
  const auto theirs = caller.introduce(caller.job().key(), caller.hello());
  REQUIRE(theirs);
  CHECK(*theirs == Hello{0, caller.hello().session, Caller::kGroup, 1, 0});
  const auto peer = caller.outcome();
  REQUIRE(peer);
  CHECK(*peer == Peer{0, "h0"});
}

TEST_CASE("strangers do not get in, nor do they keep a neighbour out") {
  Caller caller;
  const Fd silent = caller.connection();
  const Fd noisy = caller.connection();
  REQUIRE(write_all(noisy.get(), view_of(std::string(1000, 'G')), Deadline::in(1s)));
  CHECK_FALSE(caller.introduce(Key::random(), caller.hello()));
  const Fd closed_at_once = caller.connection();

  CHECK(caller.introduce(caller.job().key(), caller.hello()));
  CHECK(caller.outcome());
}

TEST_CASE("more silent strangers than are kept do not keep a neighbour out") {
  Caller caller;
  std::vector<Fd> crowd;
  for (int i = 0; i < 400; ++i) crowd.push_back(caller.connection());
  CHECK(caller.introduce(caller.job().key(), caller.hello()));
  CHECK(caller.outcome());
}

TEST_CASE(
    "a rank of another generation, meeting or group is turned away, though it knows the key") {
  Caller caller(500ms);
  Hello hello = caller.hello();
  SECTION("generation") {
    hello.generation = 7;
  }
  SECTION("meeting") {
    ++hello.session;
  }
  SECTION("group") {
    ++hello.group;
  }
  SECTION("rank that is not expected") {
    hello.from = 1;
  }
  (void)caller.introduce(caller.job().key(), hello);
  const auto peer = caller.outcome();
  REQUIRE_FALSE(peer);
  CHECK(peer.error().code == Errc::timed_out);
  CHECK_THAT(peer.error().text, Contains("waiting for rank 0 on host h0 to connect: timed out"));
}

TEST_CASE("a worker that dies before it connects is named at once") {
  Caller caller;
  caller.job().announce(0, "exited with code 3", Departure::Manner::died);
  const auto peer = caller.outcome();
  REQUIRE_FALSE(peer);
  CHECK(peer.error() == Failure(Errc::peer_lost, 0, "rank 0 on host h0 exited with code 3"));
}

TEST_CASE("a worker that never comes to the store is named by those who do") {
  LocalJob job(3, 1s);
  const auto failures = job.each_rank([&](int rank) -> std::optional<Failure> {
    if (rank == 1) return std::nullopt;
    const auto made = Job::open(job.environment(rank));
    return made ? std::nullopt : std::optional(made.error());
  });
  for (const std::size_t rank : {0u, 2u}) {
    REQUIRE(failures[rank]);
    CHECK(failures[rank]->code == Errc::timed_out);
    CHECK_THAT(failures[rank]->text, Contains("rank 1 of 3 did not come"));
  }
}
