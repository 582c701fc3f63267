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
  return {.collective = Collective::allreduce,
          .type = DataType::f64,
          .reduction = reduction,
          .count = count};
}

Operation broadcast(std::size_t count, int root) {
  return {.collective = Collective::broadcast, .type = DataType::f64, .root = root, .count = count};
}

std::unique_ptr<Communicator> opened(const JobEnvironment& environment) {
  auto made = open_communicator(environment);
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

TEST_CASE("over TCP every rank gets the same, correct sum, whatever its size", "[communicator]") {
  const int size = GENERATE(1, 2, 3, 4);
  const std::size_t count = GENERATE(0u, 1u, 3u, 1000u, 300'001u);
  LocalJob job(size);
  const auto results = job.each_rank([&](int rank) {
    auto communicator = opened(job.environment(rank));
    auto values = buffer(rank, count);
    for (int round = 0; round < 3; ++round) {
      values = buffer(rank, count);
      if (auto ran = communicator->run(allreduce(count), bytes(values), kPatience); !ran)
        throw std::runtime_error(ran.error().text);
    }
    return values;
  });

  for (std::size_t i = 0; i < count; i += 1 + count / 100) {
    double sum = 0;
    for (int rank = 0; rank < size; ++rank) sum += element(rank, i);
    REQUIRE(results[0][i] == Approx(sum));
  }
  for (const auto& values : results) REQUIRE(values == results[0]);
}

TEST_CASE("over TCP a broadcast from any root reaches every rank", "[communicator]") {
  const int size = GENERATE(2, 3, 4);
  LocalJob job(size);
  const std::size_t count = 100'000;
  const auto results = job.each_rank([&](int rank) {
    auto communicator = opened(job.environment(rank));
    std::vector<std::vector<double>> got;
    for (int root = 0; root < size; ++root) {
      got.push_back(buffer(rank, count));
      if (auto ran = communicator->run(broadcast(count, root), bytes(got.back()), kPatience); !ran)
        throw std::runtime_error(ran.error().text);
    }
    return got;
  });
  for (const auto& got : results)
    for (int root = 0; root < size; ++root)
      REQUIRE(got[static_cast<std::size_t>(root)] == buffer(root, count));
}

namespace {

// What each rank's call came to: nothing, or a failure, and how long that took.
struct Ended {
  std::optional<Failure> failure;
  std::chrono::duration<double> after{};
};

Ended call(Communicator& communicator, const Operation& operation, Duration timeout = kPatience) {
  std::vector<double> values(operation.count);
  const auto start = Clock::now();
  const auto ran = communicator.run(operation, bytes(values), timeout);
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
    auto communicator = opened(job.environment(rank));
    if (in_the_middle) (void)call(*communicator, broadcast(10, 0));
    open.arrive_and_wait();
    if (rank == 1) {
      job.announce(1, "was killed by SIGKILL", rendezvous::Departure::Manner::died);
      return Ended{};
    }
    return call(*communicator, allreduce(2'000'000));
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
    auto communicator = opened(job.environment(rank));
    open.arrive_and_wait();
    return rank == 2 ? Ended{} : call(*communicator, allreduce(100));
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

TEST_CASE("who leaves after exit code 0 disturbs nobody, until it is missed") {
  LocalJob job(3);
  std::latch gone(3);
  const auto ended = job.each_rank([&](int rank) {
    auto communicator = opened(job.environment(rank));
    if (rank == 0) {
      (void)call(*communicator, broadcast(1000, 0));
      communicator.reset();
      job.announce(0, "exited with code 0", rendezvous::Departure::Manner::left);
    }
    gone.arrive_and_wait();
    if (rank == 0) return std::pair(Ended{}, Ended{});
    const auto last = call(*communicator, broadcast(1000, 0));
    return std::pair(last, call(*communicator, allreduce(1000)));
  });
  for (const std::size_t rank : {1u, 2u}) {
    CHECK_FALSE(ended[rank].first.failure);
    REQUIRE(ended[rank].second.failure);
    CHECK(ended[rank].second.failure->rank == 0);
    CHECK_THAT(ended[rank].second.failure->text, Contains("rank 0 on host h0 exited with code 0"));
  }
}

TEST_CASE("ranks that do not call the same all learn what was called") {
  LocalJob job(3);
  const auto ended = job.each_rank([&](int rank) {
    auto communicator = opened(job.environment(rank));
    return call(*communicator, rank == 1 ? allreduce(7) : allreduce(8, Reduction::max));
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
    auto communicator = opened(job.environment(rank));
    if (rank == 0) {
      const auto late = call(*communicator, allreduce(5), 100ms);
      waited.arrive_and_wait();
      return late;
    }
    waited.arrive_and_wait();
    return call(*communicator, allreduce(5));
  });
  for (const auto& one : ended) {
    REQUIRE(one.failure);
    CHECK(one.failure->code == Errc::timed_out);
    CHECK(one.failure->rank == 1);
    CHECK_THAT(
        one.failure->text,
        Contains("allreduce(sum of 5 f64): rank 0 on host h0 waited 0.1 s in vain for rank 1 "
                 "on host h1 in step 1 of 2"));
    CHECK(one.after < 5s);
  }
}

TEST_CASE("after a failure every call ends at once in the same words") {
  LocalJob job(2);
  const auto ended = job.each_rank([&](int rank) {
    auto communicator = opened(job.environment(rank));
    if (rank == 1) return std::pair(Ended{}, Ended{});
    const auto first = call(*communicator, allreduce(5), 50ms);
    return std::pair(first, call(*communicator, broadcast(9, 1)));
  });
  REQUIRE(ended[0].first.failure);
  CHECK(ended[0].first.failure == ended[0].second.failure);
  CHECK(ended[0].second.after < 500ms);
}

TEST_CASE("when the launcher is gone, those who wait are told that") {
  LocalJob job(2);
  std::latch open(2);
  const auto ended = job.each_rank([&](int rank) {
    auto communicator = opened(job.environment(rank));
    open.arrive_and_wait();
    if (rank == 1) {
      job.end_store();
      return std::pair(Ended{}, std::move(communicator));
    }
    return std::pair(call(*communicator, allreduce(5)), std::move(communicator));
  });
  REQUIRE(ended[0].first.failure);
  CHECK(ended[0].first.failure->code == Errc::closed);
  CHECK_THAT(ended[0].first.failure->text, Contains("horovodrun has ended"));
}
