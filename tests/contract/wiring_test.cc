#include <catch2/catch.hpp>

#include "runtime/pattern/ring.h"
#include "runtime/transport/introduction.h"
#include "runtime/transport/wiring.h"
#include "tests/support/local_job.h"

using namespace corro;
using namespace corro::runtime;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

struct Card {
  std::string address, host;
  CORRO_FIELDS(address, host)
};

// Rank 1 of two wires itself on a thread.  Rank 0 is the test: it has met rank 1 in the store, and
// knows where that waits for its call.
class Stage {
 public:
  explicit Stage(Duration patience = 10s) : job_(2) {
    wiring_ = std::async(std::launch::async, [this, patience] {
      auto store =
          rendezvous::StoreClient::connect(job_.store(), job_.key(), 0, Deadline::in(patience));
      const Seat seat{{1, "h1"}, 2, 0, job_.key(), "127.0.0.1"};
      return wire(seat, ring_neighbours(1, 2), *store, Deadline::in(patience));
    });
    auto store = rendezvous::StoreClient::connect(job_.store(), job_.key(), 0, Deadline::in(10s));
    const auto cards =
        store->gather("links/0", 0, 2, encode(Card{"127.0.0.1:1", "h0"}), Deadline::in(10s));
    address_ = *Address::parse(decode<Card>((*cards)[1])->address);
  }

  LocalJob& job() { return job_; }
  Fd connection() { return std::move(*connect_to(address_, Deadline::in(10s))); }
  Outcome<Links> outcome() { return wiring_.get(); }

  // Speaks as a rank would, and gives what it heard, or why not.
  Result<Hello> introduce(const Key& key, const Hello& hello) {
    Introduction introduction(connection(), Proof::Role::client, key, hello);
    while (!introduction.done()) {
      if (auto moved = introduction.progress(); !moved) return moved.error();
      if (introduction.done()) break;
      if (auto ready = wait_for_any({introduction.interest()}, Deadline::in(10s)); !ready)
        return ready.error();
    }
    kept_.push_back(introduction.take_socket());
    return *introduction.theirs();
  }

 private:
  LocalJob job_;
  std::future<Outcome<Links>> wiring_;
  Address address_;
  std::vector<Fd> kept_;
};

}  // namespace

TEST_CASE("neighbours find each other through the store and say who they are") {
  Stage stage;
  CHECK(*stage.introduce(stage.job().key(), {0, 0}) == Hello{0, 1});
  const auto links = stage.outcome();
  REQUIRE(links);
  CHECK(links->at(0)->peer() == Peer{0, "h0"});
}

TEST_CASE("strangers do not get in, nor do they keep a neighbour out") {
  Stage stage;
  const Fd silent = stage.connection();
  const Fd noisy = stage.connection();
  REQUIRE(write_all(noisy.get(), view_of(std::string(1000, 'G')), Deadline::in(1s)));
  CHECK_FALSE(stage.introduce(Key::random(), {0, 0}));
  const Fd hung_up = stage.connection();

  CHECK(stage.introduce(stage.job().key(), {0, 0}));
  CHECK(stage.outcome());
}

TEST_CASE("a hundred silent strangers do not keep a neighbour out") {
  Stage stage;
  std::vector<Fd> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(stage.connection());
  CHECK(stage.introduce(stage.job().key(), {0, 0}));
  CHECK(stage.outcome());
}

TEST_CASE("a rank of another generation is turned away, though it knows the key") {
  Stage stage(500ms);
  (void)stage.introduce(stage.job().key(), {7, 0});
  const auto links = stage.outcome();
  REQUIRE_FALSE(links);
  CHECK(links.error().code == Errc::timed_out);
  CHECK_THAT(links.error().text, Contains("waiting for rank 0 on host h0 to connect: timed out"));
  CHECK_THAT(links.error().text,
             Contains("rank 0 is in generation 7 of the job, this one in generation 0"));
}

TEST_CASE("a rank that is not awaited is turned away") {
  Stage stage(500ms);
  (void)stage.introduce(stage.job().key(), {0, 1});
  CHECK_FALSE(stage.outcome());
}

TEST_CASE("a worker that dies before it connects is named at once") {
  Stage stage;
  stage.job().announce(0, "exited with code 3", rendezvous::Departure::Manner::died);
  const auto links = stage.outcome();
  REQUIRE_FALSE(links);
  CHECK(links.error() == Failure(Errc::peer_lost, 0, "rank 0 on host h0 exited with code 3"));
}

TEST_CASE("a worker that never comes to the store is named by those who do") {
  LocalJob job(3, 1s);
  const auto failures = job.each_rank([&](int rank) -> std::optional<Failure> {
    if (rank == 1) return std::nullopt;
    const auto made = open_communicator(job.environment(rank));
    return made ? std::nullopt : std::optional(made.error());
  });
  for (const std::size_t rank : {0u, 2u}) {
    REQUIRE(failures[rank]);
    CHECK(failures[rank]->code == Errc::timed_out);
    CHECK_THAT(failures[rank]->text, Contains("rank 1 of 3 did not come"));
  }
}
