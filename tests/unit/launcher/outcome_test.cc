#include "launcher/supervise/outcome.h"

#include <rapidcheck/catch.h>

#include <csignal>

namespace corro::launcher {

namespace {

using enum ExitCodePolicy;

WorkerEnd exits(int code) {
  return {"a", ExitStatus::exited(code), {}};
}

WorkerEnd dies_of(int signo) {
  return {"a", ExitStatus::killed(signo), {}};
}

WorkerEnd stopped_by_us(int signo) {
  return {"a", ExitStatus::killed(signo), SIGTERM};
}

const WorkerEnd kLost{"a", {}, {}};

Outcome failed(int code, std::vector<WorkerEnd> workers) {
  return {.failure = Failure{.exit_code = code}, .workers = std::move(workers)};
}

WorkerEnd any_end() {
  WorkerEnd end{"a", {}, {}};
  if (*rc::gen::inRange(0, 4) > 0)
    end.status = *rc::gen::arbitrary<bool>() ? ExitStatus::exited(*rc::gen::inRange(0, 256))
                                             : ExitStatus::killed(*rc::gen::inRange(1, 32));
  if (*rc::gen::arbitrary<bool>()) end.told_to_stop = SIGTERM;
  return end;
}

Outcome any_outcome() {
  Outcome outcome;
  const int np = *rc::gen::inRange(1, 6);
  for (int i = 0; i < np; ++i) outcome.workers.push_back(any_end());
  if (*rc::gen::arbitrary<bool>())
    outcome.failure = Failure{.exit_code = *rc::gen::inRange(1, 256)};
  if (*rc::gen::arbitrary<bool>()) outcome.interrupted_by = *rc::gen::element(SIGINT, SIGTERM);
  return outcome;
}

}  // namespace

TEST_CASE("each policy has its code for each way that a job may end") {
  struct Row {
    Outcome outcome;
    int first, max, rank0;
  };
  const auto row = GENERATE(values<Row>({
      {{.workers = {exits(0), exits(0)}}, 0, 0, 0},
      {failed(3, {exits(3), exits(0)}), 3, 3, 3},
      {failed(3, {exits(0), exits(3)}), 3, 3, 3},
      {failed(3, {exits(7), exits(3)}), 3, 7, 7},
      {failed(3, {exits(1), exits(3)}), 3, 3, 1},
      {failed(137, {stopped_by_us(SIGTERM), dies_of(SIGKILL)}), 137, 137, 137},
      {failed(3, {dies_of(SIGSEGV), exits(3), stopped_by_us(SIGKILL)}), 3, 139, 139},
      {failed(3, {stopped_by_us(SIGKILL), exits(3)}), 3, 3, 3},
      {failed(121, {kLost, exits(0)}), 121, 121, 121},
      {failed(127, {kLost}), 127, 127, 127},
      {{.interrupted_by = SIGINT, .workers = {stopped_by_us(SIGTERM)}}, 130, 130, 130},
      {{.interrupted_by = SIGTERM, .workers = {exits(0)}}, 143, 143, 143},
      {{.failure = Failure{.exit_code = 3}, .interrupted_by = SIGINT, .workers = {exits(3)}},
       3,
       3,
       3},
      {{.failure = Failure{.exit_code = 125}}, 125, 125, 125},
  }));
  CHECK(exit_code(row.outcome, first) == row.first);
  CHECK(exit_code(row.outcome, max) == row.max);
  CHECK(exit_code(row.outcome, rank0) == row.rank0);
}

TEST_CASE("policies choose among failures, and never between failure and success") {
  rc::prop("no policy makes success of a failure, or failure of a success", [] {
    const Outcome outcome = any_outcome();
    const bool good = !outcome.failure && !outcome.interrupted_by;
    for (const auto policy : {first, max, rank0})
      RC_ASSERT((exit_code(outcome, policy) == 0) == good);
  });
  rc::prop("max is never less than the others", [] {
    const Outcome outcome = any_outcome();
    for (const auto policy : {first, rank0})
      RC_ASSERT(exit_code(outcome, max) >= exit_code(outcome, policy));
  });
}

}  // namespace corro::launcher
