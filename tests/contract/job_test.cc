#include <catch2/catch.hpp>
#include <latch>

#include "tests/support/local_job.h"

using namespace corro;
using namespace corro::runtime;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 10s;

template <class T>
MutByteView bytes(std::vector<T>& values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

Operation allreduce(std::size_t count, Reduction reduction = Reduction::sum) {
  Operation op;
  op.shape.kind = Kind::allreduce;
  op.shape.type = DataType::f64;
  op.shape.reduction = reduction;
  op.shape.count = count;
  return op;
}

Operation broadcast(std::size_t count, int root) {
  Operation op;
  op.shape.kind = Kind::broadcast;
  op.shape.type = DataType::f64;
  op.shape.root = root;
  op.shape.count = count;
  return op;
}

template <class T>
Outcome<Unit> run(Job& job, const Operation& op, std::vector<T>& values, Duration timeout) {
  return job.run(Job::kWorld, op, {Pieces(ByteView(bytes(values))), MutPieces(bytes(values))},
                 timeout);
}

std::unique_ptr<Job> opened(const JobEnvironment& environment) {
  auto made = Job::open(environment);
  if (!made) throw std::runtime_error(made.error().text);
  return std::move(*made);
}

// Any value that says something about the rank and the place.
double element(int rank, std::size_t i) {
  return 1.0 / (1 + rank) + static_cast<double>(i % 97);
}

std::vector<double> buffer(int rank, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(rank, i);
  return values;
}

}  // namespace

TEST_CASE("over TCP every rank gets the same, correct sum, whatever its size", "[job]") {
  const int size = GENERATE(1, 2, 3, 4);
  const std::size_t count = GENERATE(0u, 1u, 3u, 1000u, 300'001u);
  LocalJob job(size);
  const auto results = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    auto values = buffer(rank, count);
    for (int round = 0; round < 3; ++round) {
      values = buffer(rank, count);
      if (auto ran = run(*job_of_rank, allreduce(count), values, kPatience); !ran)
        throw std::runtime_error(ran.error().text);
    }
    return values;
  });

  for (std::size_t i = 0; i < count; i += 1 + count / 100) {
    double sum = 0;
    for (int rank = 0; rank < size; ++rank) sum += element(rank, i);
    REQUIRE(results[0][i] == Approx(sum));
  }
  for (const auto& values : results) REQUIRE((values == results[0]));
}

TEST_CASE("over TCP a broadcast from any root reaches every rank", "[job]") {
  const int size = GENERATE(2, 3, 4);
  LocalJob job(size);
  const std::size_t count = 100'000;
  const auto results = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    std::vector<std::vector<double>> got;
    for (int root = 0; root < size; ++root) {
      got.push_back(buffer(rank, count));
      if (auto ran = run(*job_of_rank, broadcast(count, root), got.back(), kPatience); !ran)
        throw std::runtime_error(ran.error().text);
    }
    return got;
  });
  for (const auto& got : results)
    for (int root = 0; root < size; ++root)
      REQUIRE((got[static_cast<std::size_t>(root)] == buffer(root, count)));
}

namespace {

// What each rank's call came to: nothing, or a failure, and how long that took.
struct Ended {
  std::optional<Failure> failure;
  std::chrono::duration<double> after{};
};

Ended call(Job& job_of_rank, const Operation& operation, Duration timeout = kPatience) {
  std::vector<double> values(operation.shape.count);
  const auto start = Clock::now();
  const auto ran = run(job_of_rank, operation, values, timeout);
  return {ran ? std::nullopt : std::optional(ran.error()), Clock::now() - start};
}

using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("a rank that dies is named by every survivor as soon as the launcher knows") {
  const int size = GENERATE(2, 3, 4);
  const bool in_the_middle = GENERATE(true, false);
  LocalJob job(size);
  std::latch open(size);
  const auto ended = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    if (in_the_middle) (void)call(*job_of_rank, broadcast(10, 0));
    open.arrive_and_wait();
    if (rank == 1) {
      job.announce(1, "was killed by SIGKILL", rendezvous::Departure::Manner::died);
      return Ended{};
    }
    return call(*job_of_rank, allreduce(2'000'000));
  });
  for (int rank = 0; rank < size; ++rank) {
    if (rank == 1) continue;
    const auto& one = ended[static_cast<std::size_t>(rank)];
    REQUIRE(one.failure);
    CHECK(one.failure->code == Errc::peer_lost);
    CHECK(one.failure->rank == 1);
    CHECK_THAT(one.failure->text, Contains("rank 1 on host h1 was killed by SIGKILL"));
    CHECK(one.after < 900ms);  // before any doubt would have ended
  }
}

TEST_CASE("a connection that breaks without a word is found out, and all are told") {
  LocalJob job(4);
  std::latch open(4);
  const auto ended = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    open.arrive_and_wait();
    return rank == 2 ? Ended{} : call(*job_of_rank, allreduce(100));
  });
  for (const int rank : {0, 1, 3}) {
    const auto& one = ended[static_cast<std::size_t>(rank)];
    REQUIRE(one.failure);
    CHECK(one.failure->code == Errc::peer_lost);
    CHECK(one.failure->rank == 2);
    CHECK_THAT(one.failure->text, Contains("rank 2 on host h2 closed its connection"));
    CHECK(one.after < 5s);
  }
}

TEST_CASE("a rank that exits with code 0 disturbs no other, until it is missed") {
  LocalJob job(3);
  std::latch gone(3);
  const auto ended = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    const auto last = call(*job_of_rank, broadcast(1000, 0));
    if (rank == 0) {
      job_of_rank.reset();
      job.announce(0, "exited with code 0", rendezvous::Departure::Manner::left);
    }
    gone.arrive_and_wait();
    if (rank == 0) return std::pair(last, Ended{});
    return std::pair(last, call(*job_of_rank, allreduce(1000)));
  });
  for (const std::size_t rank : {1u, 2u}) {
    CHECK_FALSE(ended[rank].first.failure);
    REQUIRE(ended[rank].second.failure);
    CHECK(ended[rank].second.failure->rank == 0);
    CHECK_THAT(ended[rank].second.failure->text, Contains("rank 0 on host h0 exited with code 0"));
  }
}

TEST_CASE("no rank gets past a broadcast that another never called") {
  LocalJob job(3);
  const auto ended = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    if (rank == 2) return call(*job_of_rank, allreduce(3));
    return call(*job_of_rank, broadcast(rank == 0 ? 100 : 1000, 0));
  });
  for (const auto& one : ended) {
    REQUIRE(one.failure);
    CHECK(one.failure->code == Errc::invalid_input);
  }
}

TEST_CASE("ranks that do not call the same all learn what was called") {
  LocalJob job(3);
  const auto ended = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    return call(*job_of_rank, rank == 1 ? allreduce(7) : allreduce(8, Reduction::max));
  });
  for (const auto& one : ended) {
    REQUIRE(one.failure);
    CHECK(one.failure->code == Errc::invalid_input);
    CHECK_THAT(one.failure->text, Contains("rank 1 on host h1 is allreduce(sum of 7 f64)"));
    CHECK_THAT(one.failure->text, Contains("is allreduce(max of 8 f64)"));
  }
}

TEST_CASE("a rank that does not come is named when the time is over, and finds out when it does") {
  LocalJob job(2);
  std::latch waited(2);
  const auto ended = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    if (rank == 0) {
      const auto late = call(*job_of_rank, allreduce(5), 100ms);
      waited.arrive_and_wait();
      return late;
    }
    waited.arrive_and_wait();
    // What the other rank had sent before it gave up may be all that this one needs; the next
    // operation finds out.
    const auto late = call(*job_of_rank, allreduce(5));
    return late.failure ? late : call(*job_of_rank, allreduce(5));
  });
  for (const auto& one : ended) {
    REQUIRE(one.failure);
    CHECK(one.failure->code == Errc::timed_out);
    CHECK(one.failure->rank == 1);
    CHECK_THAT(
        one.failure->text,
        Contains("allreduce(sum of 5 f64): rank 0 on host h0 waited 0.1 s in vain for rank 1 "
                 "on host h1 in step 1 of 1"));
    CHECK(one.after < 5s);
  }
}

TEST_CASE("after a failure every call ends at once in the same words") {
  LocalJob job(2);
  const auto ended = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    if (rank == 1) return std::pair(Ended{}, Ended{});
    const auto first = call(*job_of_rank, allreduce(5), 50ms);
    return std::pair(first, call(*job_of_rank, broadcast(9, 1)));
  });
  REQUIRE(ended[0].first.failure);
  CHECK(ended[0].first.failure == ended[0].second.failure);
  CHECK(ended[0].second.after < 500ms);
}

TEST_CASE("when the launcher is gone, those who wait are told that") {
  LocalJob job(2);
  std::latch open(2);
  const auto ended = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    open.arrive_and_wait();
    if (rank == 1) {
      job.end_store();
      return std::pair(Ended{}, std::move(job_of_rank));
    }
    return std::pair(call(*job_of_rank, allreduce(5)), std::move(job_of_rank));
  });
  REQUIRE(ended[0].first.failure);
  CHECK(ended[0].first.failure->code == Errc::closed);
  CHECK_THAT(ended[0].first.failure->text, Contains("horovodrun has ended"));
}

TEST_CASE("in shared memory a rank that exits with code 0 is missed as well") {
  LocalJob job(3);
  job.machines([](int) { return std::string(); });
  std::latch met(3);
  const auto ended = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    const auto first = call(*job_of_rank, allreduce(1000));
    met.arrive_and_wait();
    if (rank != 1) return std::pair(first, call(*job_of_rank, allreduce(1000)));
    job.announce(1, "exited with code 0", rendezvous::Departure::Manner::left);
    return std::pair(first, Ended{});
  });
  for (const std::size_t rank : {0u, 2u}) {
    CHECK_FALSE(ended[rank].first.failure);
    REQUIRE(ended[rank].second.failure);
    CHECK(ended[rank].second.failure->rank == 1);
    CHECK(ended[rank].second.after < 5s);
  }
}

TEST_CASE("in shared memory ranks learn of what another rank calls, and of its end") {
  LocalJob job(3);
  job.machines([](int) { return std::string(); });
  SECTION("another scale") {
    const auto ended = job.each_rank([&](int rank) {
      auto job_of_rank = opened(job.environment(rank));
      Operation op = allreduce(4);
      if (rank == 1) op.shape.prescale = 2;
      return call(*job_of_rank, op);
    });
    for (const auto& one : ended) {
      REQUIRE(one.failure);
      CHECK(one.failure->code == Errc::invalid_input);
      CHECK_THAT(one.failure->text,
                 Contains("rank 1 on host h1 is allreduce(sum of 4 f64, prescale 2)"));
    }
  }
  SECTION("a rank that has closed") {
    std::latch closed(3);
    const auto ended = job.each_rank([&](int rank) {
      auto job_of_rank = opened(job.environment(rank));
      if (rank == 1) job_of_rank.reset();
      closed.arrive_and_wait();
      return rank == 1 ? Ended{} : call(*job_of_rank, allreduce(4));
    });
    for (const std::size_t rank : {0u, 2u}) {
      REQUIRE(ended[rank].failure);
      CHECK(ended[rank].failure->rank == 1);
      CHECK(ended[rank].after < 5s);
    }
  }
  SECTION("a rank that does not come is blamed by all, whichever gives up first") {
    std::latch ended_all(3);
    const auto ended = job.each_rank([&](int rank) {
      auto job_of_rank = opened(job.environment(rank));
      const auto one =
          rank == 1 ? Ended{} : call(*job_of_rank, allreduce(4), rank == 0 ? 200ms : 3s);
      ended_all.arrive_and_wait();
      return one;
    });
    for (const std::size_t rank : {0u, 2u}) {
      REQUIRE(ended[rank].failure);
      CHECK(ended[rank].failure->rank == 1);
      CHECK(ended[rank].after < 2s);
    }
  }
}

TEST_CASE("ranks on two machines that mean different things all learn so") {
  LocalJob job(4);
  job.machines([](int rank) { return "m" + std::to_string(rank / 2); });
  const int kind = GENERATE(0, 1, 2);
  const auto ended = job.each_rank([&](int rank) {
    auto job_of_rank = opened(job.environment(rank));
    if (kind == 0)  // each lane agrees with itself
      return call(*job_of_rank, allreduce(8, rank % 2 ? Reduction::average : Reduction::sum));
    if (kind == 1) return call(*job_of_rank, broadcast(8, rank == 1 ? 2 : 0));
    return call(*job_of_rank, rank == 1 ? Operation{} : broadcast(8, 0));
  });
  for (const auto& one : ended) {
    REQUIRE(one.failure);
    CHECK(one.failure->code == Errc::invalid_input);
  }
}
