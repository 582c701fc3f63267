#include "cli/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>

namespace corro::cli {

namespace news = launcher::news;
using launcher::Doing;
using launcher::Failure;
using launcher::News;
using launcher::Outcome;
using launcher::WorkerEnd;

using namespace std::chrono_literals;

namespace {

const WorkerEnd kGood{"a", ExitStatus::exited(0), {}};
const WorkerEnd kTerminated{"a", ExitStatus::killed(SIGTERM), SIGTERM};
const WorkerEnd kKilled{"a", ExitStatus::killed(SIGKILL), SIGKILL};
const WorkerEnd kUnknown{"a", {}, {}};

WorkerEnd exits(int code) {
  return {"a", ExitStatus::exited(code), {}};
}

Failure failure_of(int rank) {
  return {Failure::Kind::worker, "a", rank, "exited with code 3", 3, 1234ms};
}

}  // namespace

TEST_CASE("a job that went well needs no words") {
  CHECK(message_for(Outcome{.workers = {kGood, kGood}}) == "");
}

TEST_CASE("the first failure is named, then what became of the others") {
  CHECK(message_for(
            Outcome{.failure = failure_of(1), .workers = {kTerminated, exits(3), kTerminated}}) ==
        "horovodrun: rank 1 on host a exited with code 3, 1.2 s after the start\n"
        "  ranks 0 and 2: ended by SIGTERM\n");
}

TEST_CASE("a worker alone has no others") {
  CHECK(message_for(Outcome{.failure = failure_of(0), .workers = {exits(3)}}) ==
        "horovodrun: rank 0 on host a exited with code 3, 1.2 s after the start\n");
}

TEST_CASE("64 ranks read as three lines") {
  Outcome outcome{.failure = failure_of(7), .workers = std::vector<WorkerEnd>(64, kTerminated)};
  outcome.workers[7] = exits(3);
  for (const int rank : {9, 11}) outcome.workers[rank] = kKilled;
  for (const int rank : {20, 21, 22, 23}) outcome.workers[rank] = exits(1);
  CHECK(message_for(outcome) ==
        "horovodrun: rank 7 on host a exited with code 3, 1.2 s after the start\n"
        "  57 ranks: ended by SIGTERM\n"
        "  ranks 20, 21, 22 and 23: exited with code 1\n"
        "  ranks 9 and 11: ended by SIGKILL\n");
}

TEST_CASE("however many things 64 ranks were at, the largest two groups and the rest are told") {
  Outcome outcome{.failure = failure_of(0), .workers = std::vector<WorkerEnd>(64, kTerminated)};
  outcome.workers[0] = exits(3);
  const auto waits = [&](int rank, std::string_view call) {
    outcome.workers[rank].doing = Doing{"", false, fmt::format("sleeping in {}", call), {}, 0};
  };
  for (int rank = 1; rank < 64; ++rank) waits(rank, "futex");
  for (const int rank : {5, 6, 7}) waits(rank, "read");
  for (const int rank : {60, 61}) waits(rank, "accept");
  for (const int rank : {1, 2, 3, 4}) waits(rank, "poll");
  waits(63, "connect");
  CHECK(message_for(outcome) ==
        "horovodrun: rank 0 on host a exited with code 3, 1.2 s after the start\n"
        "  53 ranks: sleeping in futex; ended by SIGTERM\n"
        "  ranks 1, 2, 3 and 4: sleeping in poll; ended by SIGTERM\n"
        "  6 others (ranks 5-7,60-61,63): in 3 other ways; see failure.json (--output-filename)\n");
}

TEST_CASE("where nothing was started, nobody is said not to have run to an end") {
  const Failure failure{Failure::Kind::unfit, "b", {}, "host b has no GPU",
                        launcher::kExitUnfit, 10ms};
  CHECK(message_for(Outcome{.failure = failure, .workers = {kUnknown, kUnknown}}) ==
        "horovodrun: nothing was started: host b has no GPU\n");
}

TEST_CASE("what each was at is said, and groups those who were at the same") {
  Outcome outcome{.failure = failure_of(1), .workers = std::vector<WorkerEnd>(4, kTerminated)};
  outcome.workers[1] = exits(3);
  outcome.workers[1].doing = Doing{"allreduce(sum of 4 f32), call 7", true, "", {}, 0};
  outcome.workers[0].doing = Doing{"allreduce(sum of 4 f32), call 7", true, "running", {"f"}, 1};
  outcome.workers[2].doing = outcome.workers[0].doing;
  outcome.workers[3].doing = Doing{"", false, "sleeping in futex", {}, 0};
  CHECK(message_for(outcome) ==
        "horovodrun: rank 1 on host a exited with code 3, 1.2 s after the start\n"
        "  it was in allreduce(sum of 4 f32), call 7\n"
        "  ranks 0 and 2: in allreduce(sum of 4 f32), call 7; ended by SIGTERM\n"
        "  rank 3: sleeping in futex; ended by SIGTERM\n");
}

TEST_CASE("how much one had that a signal ended is said") {
  Outcome outcome{.failure = failure_of(0), .workers = {kKilled}};
  outcome.failure->cause = "was killed by SIGKILL";
  outcome.workers[0].used = Usage{812 << 20, 1500};
  CHECK(message_for(outcome).ends_with("\n  its largest process had 812 MiB\n"));
  outcome.workers[0].doing = Doing{"allreduce(sum of 4 f32), call 7", true, "", {}, 0};
  CHECK(message_for(outcome).ends_with(
      "\n  it was in allreduce(sum of 4 f32), call 7; its largest process had 812 MiB\n"));
}

TEST_CASE("each manner of ending has its words") {
  const auto [end, words] = GENERATE(table<WorkerEnd, std::string>({
      {kGood, "exited with code 0"},
      {exits(9), "exited with code 9"},
      {{"a", ExitStatus::exited(0), SIGTERM}, "exited with code 0 after SIGTERM"},
      {kTerminated, "ended by SIGTERM"},
      {{"a", ExitStatus::killed(SIGSEGV), {}}, "ended by SIGSEGV"},
      {kUnknown, "not run to an end"},
  }));
  CHECK(message_for(Outcome{.failure = failure_of(0), .workers = {exits(3), end}}) ==
        "horovodrun: rank 0 on host a exited with code 3, 1.2 s after the start\n"
        "  rank 1: " +
            words + "\n");
}

TEST_CASE("a worker that could not be started is told with the reason") {
  const Failure failure{Failure::Kind::not_started,      "b", 0,
                        "there is no program x in PATH", 127, 10ms};
  CHECK(message_for(Outcome{.failure = failure, .workers = {kUnknown}}) ==
        "horovodrun: rank 0 on host b could not be started: there is no program x in PATH\n");
}

TEST_CASE("when a host is lost, all of its workers are among the others") {
  const Failure failure{Failure::Kind::host, "b", 1, "its agent was killed by SIGKILL", 121, 2s};
  CHECK(message_for(Outcome{.failure = failure, .workers = {kTerminated, kUnknown, kUnknown}}) ==
        "horovodrun: host b was lost, 2.0 s after the start: its agent was killed by SIGKILL\n"
        "  ranks 1 and 2: not run to an end\n"
        "  rank 0: ended by SIGTERM\n");
}

TEST_CASE("an interrupt is named, and nobody is to blame") {
  CHECK(message_for(
            Outcome{.interrupted_by = SIGINT, .workers = std::vector<WorkerEnd>(5, kTerminated)}) ==
        "horovodrun: ended by SIGINT\n"
        "  5 ranks: ended by SIGTERM\n");
}

TEST_CASE("a failure before an interrupt stays the headline") {
  CHECK(message_for(
            Outcome{.failure = failure_of(0), .interrupted_by = SIGINT, .workers = {exits(3)}})
            .starts_with("horovodrun: rank 0 on host a exited with code 3"));
}

TEST_CASE("a report begins on a line of its own, and nothing is no report") {
  CHECK(message_for(Outcome{.interrupted_by = SIGINT, .inside_line = true})
            .starts_with("\nhorovodrun: ended by SIGINT\n"));
  CHECK(message_for(Outcome{.inside_line = true}) == "");
}

TEST_CASE("an error says what happened") {
  CHECK(message_for(Error(Errc::invalid_input, "no command to run was given")) ==
        "horovodrun: error: no command to run was given\n");
}

TEST_CASE("news are one line each") {
  CHECK(message_for(News(news::StoreListens{"127.0.0.1:4711"})) ==
        "horovodrun: the job's store listens on 127.0.0.1:4711\n");
  CHECK(message_for(News(news::HostReady{"a", 17})) == "horovodrun: host a is ready (agent 17)\n");
  CHECK(message_for(News(news::WorkerStarted{2, "a", 18})) ==
        "horovodrun: rank 2 runs on host a as process 18\n");
  CHECK(message_for(News(news::WorkerEnded{2, "a", ExitStatus::killed(SIGKILL)})) ==
        "horovodrun: rank 2 on host a was killed by SIGKILL\n");
}

TEST_CASE("where the start-up went is told step by step, with the host that was slowest") {
  news::RoseUp rise{.before = 1500us, .hosts_ready = 40ms, .workers_started = 42ms};
  CHECK(message_for(News(rise)) ==
        "horovodrun: start-up: 1.5 ms to understand what is wanted; hosts were ready after 40.0 "
        "ms; workers ran "
        "after 42.0 ms\n");
  rise.slowest = news::Reaching{"b", 100us, 2ms, 30ms, 5ms};
  CHECK(message_for(News(rise))
            .ends_with("; host b took longest to reach (name 0.1 ms, connection 2.0 ms, login 30.0 "
                       "ms, agent 5.0 ms)\n"));
}

}  // namespace corro::cli
