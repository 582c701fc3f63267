#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <random>

#include "runtime/op/kernels.h"
#include "tests/contract/domain_team.h"

using namespace corro;
using namespace corro::runtime;
using namespace std::chrono_literals;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

Deadline soon() {
  return Deadline::in(60s);
}

// Ranks come at different times: some at once, some late, some after the others sleep.
void skew(std::minstd_rand& random) {
  const unsigned dice = random() % 64;
  if (dice == 0) std::this_thread::sleep_for(200us);
  if (dice < 8) std::this_thread::yield();
}

// How a rank waits is varied too: spinning, yielding, or sleeping at once.
SpinPolicy some_policy(std::minstd_rand& random) {
  switch (random() % 4) {
    case 0:
      return {0ns, 0};
    case 1:
      return {5us, 0};
    default:
      return {0ns, 8};
  }
}

struct Findings {
  std::mutex mutex;
  std::vector<std::string> wrong;

  void add(std::string text) {
    const std::lock_guard lock(mutex);
    if (!text.empty()) wrong.push_back(std::move(text));
  }
};

// Runs a list of cases on all ranks and compares what each kind must give alike.
void run_cases(ThreadTeam& team, const std::vector<DomainCase>& cases, unsigned seed) {
  const std::size_t ranks = team.domains.size();
  std::vector<std::vector<std::vector<std::uint8_t>>> outs(
      ranks, std::vector<std::vector<std::uint8_t>>(cases.size()));
  Findings findings;
  team.run([&](SharedDomain& domain, int rank) {
    std::minstd_rand random(seed + static_cast<unsigned>(rank) * 77);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      skew(random);
      auto outcome = run_case(domain, some_policy(random), cases[i], soon());
      findings.add(outcome.wrong);
      if (!outcome.wrong.empty()) return;
      outs[static_cast<std::size_t>(rank)][i] = std::move(outcome.out);
    }
  });
  for (const auto& wrong : findings.wrong) FAIL_CHECK(wrong);
  if (!findings.wrong.empty()) return;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Kind kind = cases[i].operation.shape.kind;
    if (kind != Kind::allreduce && kind != Kind::allgather && kind != Kind::broadcast) continue;
    for (std::size_t r = 1; r < ranks; ++r)
      if (outs[r][i] != outs[0][i]) FAIL_CHECK(cases[i].text() << " differs on rank " << r);
  }
}

Operation allreduce_of(std::uint64_t count) {
  Operation out;
  out.shape.kind = Kind::allreduce;
  out.shape.type = DataType::f32;
  out.shape.count = count;
  return out;
}

Operation barrier_operation() {
  Operation out;
  out.shape.kind = Kind::barrier;
  return out;
}

Buffers in_place(std::vector<float>& data) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(data.data());
  const std::size_t size = data.size() * sizeof(float);
  return {Pieces(std::span<const std::uint8_t>(bytes, size)),
          MutPieces(std::span<std::uint8_t>(bytes, size))};
}

}  // namespace

TEST_CASE("every operation gives every rank what the plainest reference does") {
  for (int ranks = 1; ranks <= (kSanitized ? 5 : 9); ++ranks) {
    ThreadTeam team(ranks, {});
    const Tuning& tuning = team.domains[0]->tuning();
    const auto seed = static_cast<unsigned>(ranks);
    run_cases(team, domain_cases(ranks, tuning.slot_bytes, tuning.whole_bytes, seed), seed);
  }
}

TEST_CASE("the same with the slots of a real domain") {
  ThreadTeam team(3, {128 << 10, 4 << 10, 4 << 10});
  const Tuning& tuning = team.domains[0]->tuning();
  auto cases = domain_cases(3, tuning.slot_bytes, tuning.whole_bytes, 5);
  cases.resize(cases.size() / (kSanitized ? 32 : 8));
  run_cases(team, cases, 5);
}

TEST_CASE("ranks that mean different operations all learn which two, in the same words") {
  for (const int odd : {0, 1, 2}) {
    ThreadTeam team(3, {});
    std::vector<Failure> failures(3);
    team.run([&](SharedDomain& domain, int rank) {
      std::vector<float> data(5000, 1.0F);
      const Operation usual = allreduce_of(5000);
      // What went well before does not hide it.
      for (int i = 0; i < 3; ++i) {
        const Buffers buffers = in_place(data);
        domain.start(usual, buffers);
        if (!drive(domain, {}, soon())) return;
      }
      const Operation what = rank == odd ? barrier_operation() : usual;
      const Buffers buffers = rank == odd ? Buffers{} : in_place(data);
      domain.start(what, buffers);
      const auto driven = drive(domain, {}, soon());
      if (!driven) failures[static_cast<std::size_t>(rank)] = driven.error();
      // And it stays so.
      domain.start(usual, in_place(data));
      if (const auto again = domain.advance(); again || again.error() != driven.error())
        failures[static_cast<std::size_t>(rank)] = {};
    });
    for (const Failure& failure : failures) {
      INFO(failure.text);
      CHECK(failure == failures[0]);
      CHECK(failure.text.find("barrier") != std::string::npos);
      CHECK(failure.text.find("5000 f32") != std::string::npos);
      CHECK(failure.text.find("rank " + std::to_string(odd)) != std::string::npos);
    }
  }
}

TEST_CASE("a root that broadcasts to ranks which do something else learns it") {
  ThreadTeam team(2, {});
  std::vector<std::string> texts(2);
  team.run([&](SharedDomain& domain, int rank) {
    std::vector<float> data(1, 1.0F);
    Operation what = allreduce_of(1);
    if (rank == 0) what.shape.kind = Kind::broadcast;
    const Buffers buffers = in_place(data);
    domain.start(what, buffers);
    const auto driven = drive(domain, {}, soon());
    texts[static_cast<std::size_t>(rank)] = driven ? "done" : driven.error().text;
  });
  CHECK(texts[0] == texts[1]);
  CHECK(texts[0].find("broadcast") != std::string::npos);
}

TEST_CASE(
    "an all-to-all whose counts do not fit together fails on all ranks, which name the pair") {
  ThreadTeam team(3, {});
  std::vector<std::string> texts(3);
  team.run([&](SharedDomain& domain, int rank) {
    Operation what;
    what.shape.kind = Kind::alltoall;
    what.sends = {1, 1, 1};
    what.receives = {1, 1, 1};
    if (rank == 2) what.receives[1] = 4;
    std::vector<std::uint8_t> in(3), out(6);
    const Buffers buffers{Pieces(std::span<const std::uint8_t>(in)),
                          MutPieces(std::span(out).first(rank == 2 ? 6 : 3))};
    domain.start(what, buffers);
    const auto driven = drive(domain, {}, soon());
    texts[static_cast<std::size_t>(rank)] = driven ? "done" : driven.error().text;
  });
  for (const auto& text : texts) {
    INFO(text);
    CHECK(text == texts[0]);
    CHECK(text.find("rank 1") != std::string::npos);
    CHECK(text.find("rank 2") != std::string::npos);
  }
}

TEST_CASE("a rank that does not come is named when the time is over") {
  ThreadTeam team(3, {});
  std::vector<float> data(1, 1.0F);
  const Operation what = allreduce_of(1);
  const Buffers buffers = in_place(data);
  team.domains[0]->start(what, buffers);
  team.domains[1]->start(what, buffers);
  const auto driven = drive(*team.domains[0], {}, Deadline::in(20ms));
  REQUIRE(!driven);
  CHECK(driven.error().code == Errc::timed_out);
  CHECK(driven.error().rank == 2);
}

TEST_CASE("what else becomes readable interrupts the wait, and the operation can go on") {
  ThreadTeam team(2, {});
  auto pipe = make_pipe();
  REQUIRE(pipe);
  REQUIRE(::write(pipe->write_end.get(), "x", 1) == 1);
  std::vector<float> a(1, 1.0F), b(1, 2.0F);
  const Operation what = allreduce_of(1);
  const Buffers first = in_place(a), second = in_place(b);
  team.domains[0]->start(what, first);
  const int also[] = {pipe->read_end.get()};
  auto driven = drive(*team.domains[0], {}, soon(), also);
  REQUIRE(driven);
  CHECK(*driven == Driven::interrupted);
  team.domains[1]->start(what, second);
  driven = drive(*team.domains[0], {}, soon(), also);
  REQUIRE(driven);
  CHECK(*driven == Driven::done);
  CHECK(a[0] == 3);
}

TEST_CASE("buffers of the arena are reduced where they are, mixed ones too") {
  for (const int ranks : {2, 3, 5}) {
    ThreadTeam team(ranks, {4096, 1024, 2048, 8 << 20});
    Findings findings;
    team.run([&](SharedDomain& domain, int rank) {
      auto& arena = *team.arenas[static_cast<std::size_t>(rank)];
      // Which ranks have their buffers in the arena: all, all but one, none; in or out of place.
      for (int round = 0; round < 24; ++round) {
        const bool mine = round % 3 == 0 || (round % 3 == 1 && rank != round % ranks);
        const bool same = round % 2 == 0;
        const std::size_t count = 3001 + static_cast<std::size_t>(round) * 111;
        std::vector<float> own_in(count), own_out(count);
        auto* in = mine ? static_cast<float*>(arena.allocate(count * 4)) : own_in.data();
        auto* out = same   ? in
                    : mine ? static_cast<float*>(arena.allocate(count * 4))
                           : own_out.data();
        for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<float>(i % 100 + rank);
        DomainCase test;
        test.operation = allreduce_of(count);
        const Buffers buffers{Pieces({reinterpret_cast<const std::uint8_t*>(in), count * 4}),
                              MutPieces({reinterpret_cast<std::uint8_t*>(out), count * 4})};
        domain.start(test.operation, buffers);
        if (const auto driven = drive(domain, {0ns, 4}, soon()); !driven)
          return findings.add(driven.error().text);
        for (std::size_t i = 0; i < count; ++i) {
          const auto expected =
              static_cast<float>(static_cast<int>(i % 100) * ranks + ranks * (ranks - 1) / 2);
          if (out[i] != expected) return findings.add("round " + std::to_string(round));
        }
        if (mine && !arena.release(in)) findings.add("lost");
        if (mine && !same) arena.release(out);
      }
    });
    for (const auto& wrong : findings.wrong) FAIL_CHECK(wrong);
  }
}

TEST_CASE("inputs in the arena are gathered, scattered and broadcast from where they are") {
  const int ranks = 3;
  ThreadTeam team(ranks, {4096, 1024, 2048, 8 << 20});
  Findings findings;
  team.run([&](SharedDomain& domain, int rank) {
    auto& arena = *team.arenas[static_cast<std::size_t>(rank)];
    for (const Kind kind : {Kind::allgather, Kind::reducescatter, Kind::broadcast})
      for (const bool everyone : {true, false}) {
        DomainCase test;
        Shape& shape = test.operation.shape;
        shape.kind = kind;
        shape.type = DataType::i32;
        shape.parts = {2000, 0, 3001};
        shape.count = 5001;
        shape.root = 2;
        if (kind == Kind::broadcast) shape.parts.clear();
        const std::size_t bytes = test.operation.in_bytes(rank);
        const auto input = input_of(test, rank, bytes);
        std::vector<std::uint8_t> out(test.operation.out_bytes(rank));
        auto* in = static_cast<std::uint8_t*>(arena.allocate(bytes));
        if (bytes > 0) std::memcpy(in, input.data(), bytes);
        const bool direct = everyone || rank == 0;
        const Buffers buffers{Pieces({direct ? in : input.data(), bytes}),
                              MutPieces(std::span(out))};
        domain.start(test.operation, buffers);
        if (const auto driven = drive(domain, {0ns, 4}, soon()); !driven)
          return findings.add(driven.error().text);
        findings.add(wrong_in(test, rank, ranks, out));
        arena.release(in);
      }
  });
  for (const auto& wrong : findings.wrong) FAIL_CHECK(wrong);
}
