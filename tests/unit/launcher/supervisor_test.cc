#include "launcher/supervise/supervisor.h"

#include <catch2/catch.hpp>

#include "stage.h"

namespace corro::launcher {

using namespace std::chrono_literals;

TEST_CASE("workers are started when all hosts are ready, and not before") {
  Stage stage("a:2,b:1", 3);
  stage.host("b").is_ready();
  CHECK(stage.ordered().empty());
  stage.host("b").is_ready();
  CHECK(stage.ordered().empty());
  stage.host("a").is_ready();
  CHECK(stage.ordered() == Transcript{"start 0", "start 1", "start 2"});
}

TEST_CASE("nothing starts before it is known what each worker gets") {
  const Plan plan = *make_plan(std::vector<HostSpec>{{"a", 1}}, 1, 3);
  Supervisor supervisor(plan, {}, TimePoint());
  CHECK(supervisor.on(heard::HostReady{"a"}, TimePoint()).empty());
  CHECK(supervisor.on(heard::Arranged{}, TimePoint()) == Orders{order::Start{0}});
}

TEST_CASE("of hosts that cannot be reached the user hears all at once") {
  Stage stage("a:1,b:1,c:1", 3);
  stage.host("b").is_not_reached("b is down", kExitUnreached);
  stage.host("b").vanishes();
  stage.time_passes(1s);
  CHECK(stage.ordered().empty());
  stage.host("a").is_ready();
  stage.host("c").is_not_reached("c refuses the key", kExitLogin);
  CHECK(stage.ordered() == Transcript{"close a", "close c"});
  stage.host("a").closes();
  stage.host("c").closes();
  CHECK(stage.ordered() == Transcript{"finish"});
  CHECK(stage.code() == kExitUnreached);
  CHECK(stage.outcome().unreachable ==
        std::vector<Unreachable>{{"b", "b is down", "mend it", kExitUnreached},
                                 {"c", "c refuses the key", "mend it", kExitLogin}});
}

TEST_CASE("a host that keeps silent is not waited for when another cannot be reached") {
  Stage stage("a:1,b:1", 2);
  stage.host("b").is_not_reached("b is down", kExitUnreached);
  stage.time_passes(1999ms);
  CHECK(stage.ordered().empty());
  stage.time_passes(1ms);
  CHECK(stage.ordered() == Transcript{"close a", "close b"});
  CHECK(stage.code() == kExitUnreached);
}

TEST_CASE("a connection that breaks in the middle of the job is the end of its workers") {
  Stage stage("a:1,b:1", 2);
  stage.rises();
  stage.host("b").is_not_reached("the connection to b was reset", kExitHostLost);
  CHECK(stage.told() ==
        Transcript{"rank 1 on host b was lost with its host: the connection to b was reset"});
  CHECK(stage.outcome().unreachable.empty());
  CHECK(stage.outcome().failure->cause == "the connection to b was reset");
  stage.host("b").vanishes();
  stage.worker(0).exits(1);
  CHECK(stage.code() == kExitHostLost);
}

TEST_CASE("a job whose workers all exit with 0 is a success") {
  Stage stage("a:2,b:1", 3);
  stage.rises();
  stage.time_passes(10s);
  stage.worker(2).exits(0);
  stage.worker(0).exits(0);
  CHECK(stage.told() ==
        Transcript{"rank 2 on host b exited with code 0", "rank 0 on host a exited with code 0"});
  stage.worker(1).exits(0);
  CHECK(stage.ordered() ==
        Transcript{"tell: rank 1 on host a exited with code 0", "close a", "close b"});
  stage.host("a").closes();
  CHECK(stage.ordered().empty());
  stage.host("b").closes();
  CHECK(stage.ordered() == Transcript{"finish"});
  CHECK(stage.code() == 0);
  CHECK(stage.outcome().took == 10s);
  CHECK_FALSE(stage.outcome().failure);
  for (const WorkerEnd& end : stage.outcome().workers) {
    CHECK(end.status == ExitStatus::exited(0));
    CHECK_FALSE(end.told_to_stop);
  }
}

TEST_CASE("who goes with 0 has left, who goes otherwise has died, in this generation") {
  const Plan plan = *make_plan(std::vector<HostSpec>{{"a", 2}}, 2, 3);
  Supervisor supervisor(plan, {}, TimePoint());
  const auto hear = [&](const Event& event) { return supervisor.on(event, TimePoint()); };
  hear(heard::Arranged{});
  hear(heard::HostReady{"a"});
  hear(heard::Started{0, 1});
  hear(heard::Started{1, 2});
  CHECK(hear(heard::Exited{0, ExitStatus::exited(0)}) ==
        Orders{order::Announce{
            {3, 0, "a", "exited with code 0", rendezvous::Departure::Manner::left}}});
  CHECK(hear(heard::Exited{1, ExitStatus::killed(SIGSEGV)}).front() ==
        Order(order::Announce{
            {3, 1, "a", "was killed by SIGSEGV", rendezvous::Departure::Manner::died}}));
}

TEST_CASE(
    "the first worker to fail names the exit code; the others are told, then asked, then made to "
    "end") {
  Stage stage("a:2,b:2", 4);
  stage.rises();
  stage.time_passes(3s);
  stage.worker(2).exits(7);
  CHECK(stage.ordered() == Transcript{"tell: rank 2 on host b exited with code 7"});
  stage.time_passes(499ms);
  CHECK(stage.ordered().empty());
  stage.time_passes(1ms);
  CHECK(stage.ordered() == sent(SIGTERM, {0, 1, 3}));
  stage.time_passes(4999ms);
  CHECK(stage.ordered().empty());
  stage.time_passes(1ms);
  CHECK(stage.ordered() == sent(SIGKILL, {0, 1, 3}));
  for (const int rank : {0, 1, 3}) stage.worker(rank).dies_of(SIGKILL);
  CHECK(stage.phase() == JobPhase::closing);
  stage.all_hosts_close();
  CHECK(stage.ordered().back() == "finish");
  CHECK(stage.code() == 7);
  CHECK(stage.outcome().failure == Failure{.kind = Failure::Kind::worker,
                                           .host = "b",
                                           .rank = 2,
                                           .cause = "exited with code 7",
                                           .exit_code = 7,
                                           .after = 3s});
  CHECK(stage.outcome().workers[0] == WorkerEnd{"a", ExitStatus::killed(SIGKILL), SIGKILL});
  CHECK(stage.outcome().workers[2] == WorkerEnd{"b", ExitStatus::exited(7), std::nullopt});
}

TEST_CASE("those who end by themselves in time are not signalled") {
  Stage stage("a:3", 3);
  stage.rises();
  stage.worker(1).exits(1);
  stage.worker(0).exits(9);
  stage.ordered();
  stage.time_passes(500ms);
  CHECK(stage.ordered() == sent(SIGTERM, {2}));
  stage.worker(2).dies_of(SIGTERM);
  CHECK(stage.ordered() == Transcript{"tell: rank 2 on host a was killed by SIGTERM", "close a"});
  CHECK(stage.code() == 1);
}

TEST_CASE("when all have said their last words nobody waits") {
  Stage stage("a:2", 2);
  stage.rises();
  stage.worker(0).exits(1);
  stage.worker(1).exits(2);
  CHECK(stage.phase() == JobPhase::closing);
  CHECK(stage.code() == 1);
}

TEST_CASE("a worker killed by a signal gives 128 and its number") {
  for (const auto& [signo, code] : {std::pair{SIGKILL, 137}, {SIGSEGV, 139}, {SIGTERM, 143}}) {
    Stage stage("a:1", 1);
    stage.rises();
    stage.worker(0).dies_of(signo);
    stage.all_hosts_close();
    CHECK(stage.code() == code);
  }
}

TEST_CASE("a program that cannot be run gives what a shell gives") {
  Stage stage("a:2", 2);
  stage.host("a").is_ready();
  stage.worker(0).starts();
  stage.ordered();
  const auto [why, code] =
      GENERATE(std::pair{Error(Errc::not_found, "there is no program x in PATH"), 127},
               std::pair{Error(Errc::unsupported, "x may not be executed"), 126},
               std::pair{Error(Errc::io, "starting x: no more processes"), 125});
  stage.worker(1).cannot_start(why);
  CHECK(stage.ordered() ==
        Transcript{"tell: rank 1 on host a could not be started: " + why.text()});
  stage.time_passes(500ms);
  CHECK(stage.ordered() == sent(SIGTERM, {0}));
  stage.worker(0).dies_of(SIGTERM);
  stage.all_hosts_close();
  CHECK(stage.code() == code);
  CHECK(stage.outcome().failure->kind == Failure::Kind::not_started);
  CHECK_FALSE(stage.outcome().workers[1].status);
}

TEST_CASE("a host that vanishes takes its workers with it, once") {
  Stage stage("a:2,b:2", 4);
  stage.rises();
  stage.host("b").vanishes("its guard was killed by SIGKILL");
  CHECK(
      stage.ordered() ==
      Transcript{"tell: rank 2 on host b was lost with its host: its guard was killed by SIGKILL",
                 "tell: rank 3 on host b was lost with its host: its guard was killed by SIGKILL"});
  stage.host("b").vanishes();
  CHECK(stage.ordered().empty());
  stage.time_passes(500ms);
  CHECK(stage.ordered() == sent(SIGTERM, {0, 1}));
  stage.worker(0).exits(0);
  stage.worker(1).exits(0);
  CHECK(stage.ordered().back() == "close a");
  stage.host("a").closes();
  CHECK(stage.code() == kExitHostLost);
  CHECK(stage.outcome().failure == Failure{.kind = Failure::Kind::host,
                                           .host = "b",
                                           .rank = 2,
                                           .cause = "its guard was killed by SIGKILL",
                                           .exit_code = 121});
}

TEST_CASE("a host that goes when its workers are done harms nobody") {
  Stage stage("a:1,b:1", 2);
  stage.rises();
  stage.worker(1).exits(0);
  stage.host("b").vanishes();
  CHECK(stage.phase() == JobPhase::running);
  stage.worker(0).exits(0);
  CHECK(stage.ordered().back() == "close a");
  stage.host("a").closes();
  CHECK(stage.code() == 0);
}

TEST_CASE(
    "workers of a host that gives up have their grace, but what becomes of them does not count") {
  Stage stage("a:2", 2);
  stage.rises();
  stage.worker(1).exits(0);
  stage.ordered();
  stage.host("a").gives_up("its agent got SIGTERM");
  CHECK(stage.told() ==
        Transcript{"rank 0 on host a was lost with its host: its agent got SIGTERM"});
  CHECK(stage.phase() == JobPhase::last_words);

  stage.time_passes(2s);
  CHECK(stage.ordered().empty());  // its agent sees to it
  stage.worker(0).exits(0);
  CHECK(stage.ordered().empty());
  stage.host("a").closes();
  CHECK(stage.ordered() == Transcript{"finish"});
  CHECK(stage.code() == kExitHostLost);
  CHECK_FALSE(stage.outcome().workers[0].status);
}

TEST_CASE("a host that gives up and then does nothing is not waited for longer than the others") {
  Stage stage("a:1,b:1", 2);
  stage.rises();
  stage.host("b").gives_up("the launcher was not heard of for 5.0 s");
  stage.worker(0).exits(0);
  stage.ordered();
  stage.time_passes(500ms + 5s);
  CHECK(stage.phase() == JobPhase::killing);
  stage.time_passes(2s);
  CHECK(stage.ordered() == Transcript{"close a", "close b"});
  stage.time_passes(2s);
  CHECK(stage.ordered() == Transcript{"terminate a", "terminate b"});
}

TEST_CASE("a host that is lost before anything ran ends the job") {
  Stage stage("a:1,b:1", 2);
  SECTION("before it was ready") {
    stage.host("b").vanishes("its agent exited with code 125");
  }
  SECTION("after it was ready, while another is awaited") {
    stage.host("b").is_ready();
    stage.host("b").vanishes("its agent exited with code 125");
  }
  SECTION("because it is of another version") {
    stage.host("b").gives_up("it runs version 9, and this is 1");
    stage.host("b").closes();
  }
  CHECK(stage.phase() == JobPhase::closing);
  stage.ordered();
  stage.host("a").closes();
  CHECK(stage.ordered() == Transcript{"finish"});
  CHECK(stage.code() == kExitHostLost);
  CHECK(stage.outcome().failure->host == "b");
}

TEST_CASE("a host that does not answer in time is named, with the code of a timeout") {
  Stage stage("a:1,b:1", 2);
  stage.host("a").is_ready();
  stage.time_passes(29s);
  CHECK(stage.ordered().empty());
  stage.time_passes(1s);
  CHECK(stage.ordered() == Transcript{"close a", "close b"});
  stage.host("b").is_ready();
  CHECK(stage.ordered().empty());
  stage.all_hosts_close();
  CHECK(stage.code() == kExitTimeout);
  CHECK(stage.outcome().failure->host == "b");
  CHECK(stage.outcome().failure->cause == "did not answer within 30 s");
}

TEST_CASE("an interrupt asks the workers to end at once; how they do is its consequence") {
  Stage stage("a:2", 2);
  stage.rises();
  stage.is_interrupted(SIGINT);
  CHECK(stage.ordered() == sent(SIGTERM, {0, 1}));
  stage.worker(0).exits(1);
  stage.worker(1).exits(0);
  CHECK(stage.ordered().back() == "close a");
  stage.all_hosts_close();
  CHECK(stage.code() == 130);
  CHECK_FALSE(stage.outcome().failure);
  CHECK(stage.outcome().workers[0] == WorkerEnd{"a", ExitStatus::exited(1), SIGTERM});
}

TEST_CASE("a host that is lost after an interrupt is its consequence too") {
  Stage stage("a:1", 1);
  stage.rises();
  stage.is_interrupted(SIGTERM);
  stage.host("a").vanishes();
  CHECK(stage.ordered().back() == "finish");
  CHECK(stage.code() == 143);
}

TEST_CASE("after an interrupt the grace runs, and a second one ends it") {
  Stage stage("a:2", 2);
  stage.rises();
  stage.is_interrupted(SIGINT);
  stage.ordered();
  SECTION("in time") {
    stage.time_passes(5s);
  }
  SECTION("by the user") {
    stage.time_passes(1s);
    stage.is_interrupted(SIGTERM);
  }
  CHECK(stage.ordered() == sent(SIGKILL, {0, 1}));
  stage.is_interrupted(SIGINT);
  CHECK(stage.ordered().empty());
  stage.worker(0).dies_of(SIGKILL);
  stage.worker(1).dies_of(SIGKILL);
  stage.all_hosts_close();
  CHECK(stage.code() == 130);
}

TEST_CASE("a terminal that closes is heard once") {
  Stage stage("a:1", 1);
  stage.rises();
  stage.is_interrupted(SIGHUP);
  CHECK(stage.ordered() == sent(SIGTERM, {0}));
  stage.is_interrupted(SIGHUP);
  CHECK(stage.ordered().empty());
  CHECK(stage.phase() == JobPhase::terminating);
  stage.is_interrupted(SIGINT);
  CHECK(stage.ordered() == sent(SIGKILL, {0}));
  CHECK(stage.code() == 129);
}

TEST_CASE("an interrupt while hosts are awaited starts nothing") {
  Stage stage("a:1,b:1", 2);
  stage.host("a").is_ready();
  stage.is_interrupted(SIGINT);
  CHECK(stage.ordered() == Transcript{"close a", "close b"});
  stage.host("b").is_ready();
  stage.host("a").closes();
  CHECK(stage.ordered().empty());
  stage.host("b").closes();
  CHECK(stage.ordered() == Transcript{"finish"});
  CHECK(stage.code() == 130);
}

TEST_CASE("an interrupt after a failure hurries it, and the failure stays the cause") {
  Stage stage("a:2", 2);
  stage.rises();
  stage.worker(0).exits(3);
  stage.ordered();
  stage.is_interrupted(SIGINT);
  CHECK(stage.ordered() == sent(SIGTERM, {1}));
  stage.is_interrupted(SIGINT);
  CHECK(stage.ordered() == sent(SIGKILL, {1}));
  stage.worker(1).dies_of(SIGKILL);
  stage.all_hosts_close();
  CHECK(stage.code() == 3);
}

TEST_CASE("a worker that is being started is signalled too") {
  Stage stage("a:1", 1);
  stage.host("a").is_ready();
  stage.ordered();
  stage.is_interrupted(SIGINT);
  CHECK(stage.ordered() == sent(SIGTERM, {0}));
}

TEST_CASE("workers that no signal moves, and hosts that do not close, are given up step by step") {
  Stage stage("a:1,b:1", 2);
  stage.rises();
  stage.worker(0).exits(5);
  stage.ordered();
  stage.time_passes(500ms);
  CHECK(stage.ordered() == sent(SIGTERM, {1}));
  stage.time_passes(5s);
  CHECK(stage.ordered() == sent(SIGKILL, {1}));
  stage.time_passes(2s);
  CHECK(stage.ordered() == Transcript{"close a", "close b"});
  stage.host("a").closes();
  stage.time_passes(2s);
  CHECK(stage.ordered() == Transcript{"terminate b"});
  stage.time_passes(1h);
  CHECK(stage.ordered().empty());
  stage.host("b").vanishes();
  CHECK(stage.ordered() == Transcript{"finish"});
  CHECK(stage.code() == 5);
  CHECK_FALSE(stage.outcome().workers[1].status);
}

TEST_CASE("the policy's times are the ones that count") {
  Stage stage("a:2", 2, {.start_timeout = 1s, .last_words = 2s, .grace = 0s, .reports = 3s});
  stage.rises();
  stage.worker(0).exits(5);
  stage.ordered();
  stage.time_passes(2s);
  CHECK(stage.ordered() == Transcript{"SIGTERM 1", "SIGKILL 1"});
  stage.time_passes(3s);
  CHECK(stage.ordered() == Transcript{"close a"});
}

TEST_CASE("what makes no sense changes nothing") {
  Stage stage("a:1,b:1", 2);
  stage.worker(0).exits(3);  // of whom nobody knows that it was started
  stage.worker(0).starts();
  stage.rises();
  stage.worker(7).exits(1);
  stage.worker(-1).exits(1);
  stage.worker(0).cannot_start(Error(Errc::io, "late"));
  stage.host("c").vanishes();
  stage.host("c").gives_up("who?");
  stage.host("a").is_ready();
  CHECK(stage.ordered().empty());
  CHECK(stage.phase() == JobPhase::running);
  stage.worker(0).exits(0);
  stage.worker(0).exits(4);
  stage.worker(1).exits(0);
  stage.all_hosts_close();
  CHECK(stage.code() == 0);
}

TEST_CASE("a signal that is meant for the workers reaches those that live, and ends nothing") {
  Stage stage("a:3", 3);
  stage.hear(heard::Spoken{SIGUSR1});
  CHECK(stage.ordered().empty());
  stage.rises();
  stage.worker(1).exits(0);
  stage.ordered();
  stage.hear(heard::Spoken{SIGUSR1});
  CHECK(stage.ordered() == sent(SIGUSR1, {0, 2}));
  CHECK(stage.phase() == JobPhase::running);
  stage.worker(0).dies_of(SIGUSR1);
  CHECK_FALSE(stage.outcome().workers[0].told_to_stop);
  CHECK(stage.outcome().failure->rank == 0);
}

TEST_CASE("the time for which a job is held counts for nothing, whatever it waits for") {
  Stage stage("a:1,b:1", 2);
  SECTION("its hosts") {
    stage.time_passes(29s);
    stage.is_held_for(1h);
    stage.time_passes(999ms);
    CHECK(stage.phase() == JobPhase::gathering);
    stage.time_passes(1ms);
    CHECK(stage.outcome().failure->cause == "did not answer within 30 s");
  }
  SECTION("the last words and what is seen of the others") {
    stage.hosts_see_at_once = false;
    stage.rises();
    stage.worker(0).exits(1);
    stage.time_passes(400ms);
    stage.is_held_for(1h);
    stage.host("b").has_seen_its_workers();
    stage.time_passes(99ms);
    CHECK(stage.phase() == JobPhase::last_words);
    stage.time_passes(1ms);
    CHECK(stage.phase() == JobPhase::terminating);
  }
  SECTION("the grace") {
    stage.rises();
    stage.is_interrupted(SIGINT);
    stage.time_passes(4s);
    stage.is_held_for(1h);
    stage.time_passes(999ms);
    CHECK(stage.phase() == JobPhase::terminating);
    stage.time_passes(1ms);
    CHECK(stage.phase() == JobPhase::killing);
  }
  SECTION("nobody") {
    stage.rises();
    stage.is_held_for(1h);
    CHECK(stage.phase() == JobPhase::running);
  }
}

TEST_CASE("a host that lacks what the job needs ends it before anything starts") {
  Stage stage("a:1,b:1", 2);
  stage.host("a").is_ready();
  stage.hear(heard::Unfit{"b", "host b has no GPU, and host a has"});
  CHECK(stage.ordered() == Transcript{"close a", "close b"});
  stage.all_hosts_close();
  CHECK(stage.code() == kExitUnfit);
  CHECK(stage.outcome().failure->kind == Failure::Kind::unfit);
}

TEST_CASE("an event without an edge changes nothing, and is told with phase and event") {
  Stage stage("a:1,b:1", 2);
  stage.worker(1).exits(0);
  CHECK(stage.dropped() == Transcript{"rank 1: no edge for exited in phase planned"});
  stage.host("a").is_ready();
  CHECK(stage.dropped().empty());
  stage.host("b").is_ready();
  CHECK(stage.dropped().empty());
  CHECK(stage.ordered() == Transcript{"start 0", "start 1"});
}

}  // namespace corro::launcher
