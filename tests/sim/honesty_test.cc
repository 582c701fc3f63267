// The simulator is a test of others; these test it: that it sees what is wrong, and that what it
// has seen once it can show again.
#include <catch2/catch.hpp>

#include "tests/sim/scenarios.h"

using namespace corro;
using namespace corro::runtime;
using namespace corro::test;

namespace {

// A schedule with one mistake: in one step it puts what it receives one element too low.
class OffByOne final : public Schedule {
 public:
  explicit OffByOne(std::unique_ptr<Schedule> right) : right_(std::move(right)) {}

  int steps() const override { return right_->steps(); }
  Step step(int k) const override {
    Step step = right_->step(k);
    Range& range = step.recv.range;
    if (k == 1 && range.begin > 0) range = {range.begin - 1, range.end - 1};
    return step;
  }

  LocalCopy local_copy() const override { return right_->local_copy(); }
  std::size_t scratch() const override { return right_->scratch(); }

 private:
  std::unique_ptr<Schedule> right_;
};

ScheduleFor wrong_on_rank_1() {
  return [](const Operation& op, int rank, int size) -> std::unique_ptr<Schedule> {
    auto right = any_schedule(op, rank, size);
    if (rank != 1) return right;
    return std::make_unique<OffByOne>(std::move(right));
  };
}

// How many worlds of twenty are worse for it.  A mistake need not show in all: a world may call
// nothing but broadcasts, or have fewer elements than ranks.
template <class Worsen>
int complaints(Worsen worsen) {
  int seen = 0;
  for (std::uint64_t seed = 4; seed < 24; ++seed) {
    Scenario scenario = calm(seed);
    worsen(scenario);
    if (complaint(scenario)) ++seen;
  }
  return seen;
}

struct Story {
  std::uint64_t digest;
  std::optional<std::string> complaint;
  int failures;
  bool operator==(const Story&) const = default;
};

Story told(const Scenario& scenario) {
  World world(scenario);
  world.play();
  return {world.digest(), world.complaint(), world.failures()};
}

}  // namespace

TEST_CASE("a schedule with one wrong range on one rank is found out") {
  CHECK(complaints([](Scenario& s) { s.schedule = wrong_on_rank_1(); }) > 5);
}

TEST_CASE("a network that brings bytes twice is found out") {
  CHECK(complaints([](Scenario& s) { s.weather.duplicate_one_in = 50; }) > 15);
}

TEST_CASE("a death is found to have consequences") {
  int failures = 0;
  for (std::uint64_t seed = 4; seed < 14; ++seed) failures += told(deadly(seed, 1)).failures;
  CHECK(failures > 20);
}

TEST_CASE("the same seed tells the same story, event by event; another tells another") {
  for (const std::uint64_t seed : {5, 12, 31}) {
    CHECK(told(deadly(seed, 2)) == told(deadly(seed, 2)));
    CHECK(told(deadly(seed, 2)).digest != told(deadly(seed + 33, 2)).digest);
  }
}

TEST_CASE("a seed that failed fails again, in the same words") {
  int failed = 0;
  for (std::uint64_t seed = 4; seed < 14; ++seed) {
    Scenario scenario = calm(seed);
    scenario.schedule = wrong_on_rank_1();
    const Story first = told(scenario);
    CHECK(told(scenario) == first);
    if (first.complaint) ++failed;
  }
  CHECK(failed > 0);
}
