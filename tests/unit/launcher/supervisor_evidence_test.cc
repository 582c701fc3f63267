// What is seen and known of workers when one of them fails.
#include <catch2/catch.hpp>

#include "tests/unit/launcher/stage.h"

namespace corro::launcher {

using namespace std::chrono_literals;

TEST_CASE("what the others do is looked at before they are ended, within two seconds") {
  Stage stage("a:2,b:1,c:1", 4);
  stage.hosts_see_at_once = false;
  stage.rises();
  stage.worker(3).exits(1);
  CHECK(stage.ordered() ==
        Transcript{"tell: rank 3 on host c exited with code 1", "examine a", "examine b"});
  stage.host("a").has_seen_its_workers();
  stage.time_passes(1900ms);
  CHECK(stage.ordered().empty());
  SECTION("when the last host has answered, it goes on") {
    stage.host("b").has_seen_its_workers();
    CHECK(stage.ordered() == sent(SIGTERM, {0, 1, 2}));
  }
  SECTION("one that does not answer is not waited for") {
    stage.time_passes(100ms);
    CHECK(stage.ordered() == sent(SIGTERM, {0, 1, 2}));
  }
  SECTION("nor is one that is lost") {
    stage.host("b").vanishes();
    CHECK(stage.told().size() == 1);
    stage.time_passes(100ms);
    CHECK(stage.ordered() == sent(SIGTERM, {0, 1}));
  }
}

TEST_CASE("a quick look does not shorten the last words") {
  Stage stage("a:2", 2);
  stage.rises();
  stage.worker(0).exits(1);
  stage.ordered();
  stage.time_passes(499ms);
  CHECK(stage.ordered().empty());
  stage.time_passes(1ms);
  CHECK(stage.ordered() == sent(SIGTERM, {1}));
}

TEST_CASE("what is known of why is part of the cause, for everybody") {
  Stage stage("a:2", 2);
  stage.rises();
  stage.hear(heard::Exited{0, ExitStatus::killed(SIGKILL), "out of memory"});
  CHECK(stage.told() == Transcript{"rank 0 on host a was killed by SIGKILL: out of memory"});
  CHECK(stage.outcome().failure->cause == "was killed by SIGKILL: out of memory");
}

}  // namespace corro::launcher
