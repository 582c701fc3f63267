#include "launcher/job/host_survey.h"

#include <catch2/catch.hpp>

#include "fake_session.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

const Door kDoor{"eth0", "10.0.0.1", 4000, 1000};

// A survey of hosts that do what a test says.
struct Clinic {
  explicit Clinic(const Words& names, Look look = Look::all, std::set<std::string> here = {}) {
    for (const std::string& name : names) spec.hosts.push_back({name, 1});
    spec.np = static_cast<int>(names.size());
    spec.start_timeout = 30s;
    HostSurvey::Setup setup{.look = look,
                            .here = here,
                            .key = {},
                            .launcher_doors = {},
                            .now = hosts.now(),
                            .wall_clock = [this] { return wall_clock; },
                            .open = hosts.open(),
                            .watch = [this](const ConsultProgress& p) { progress = p; }};
    if (here.size() < names.size()) setup.launcher_doors = {{kDoor}};
    survey.emplace(spec, std::move(setup));
    survey->begin();
  }

  void pass(Duration d) { hosts.pass(d, *survey); }
  void is_ready(const std::string& host) { hosts.say(host, agent::Ready{CORRO_VERSION, 7}); }
  void is_seen(const std::string& host) {
    is_ready(host);
    hosts.say(host, agent::Facts{.doors = {kDoor}});
    hosts.say(host, agent::Inspected{});
  }
  void has_probed(const std::string& host) { hosts.say(host, agent::Knocked{}); }

  // All that are told to go do so.
  doctor::Consultation result() {
    for (const HostSpec& host : spec.hosts)
      if (hosts.has(host.name)) hosts.end(host.name);
    pass(0s);
    REQUIRE(survey->finished());
    return survey->take_result();
  }

  JobSpec spec;
  FakeHosts hosts;
  std::chrono::microseconds wall_clock{1'000'000};
  ConsultProgress progress;
  std::optional<HostSurvey> survey;
};

std::string barrier_of(const doctor::HostReport& report) {
  return report.barrier ? report.barrier->why : "none";
}

}  // namespace

TEST_CASE("a host is asked what it has, probes the others, and is closed") {
  Clinic c({"a", "b"});
  c.hosts.say("a", agent::Reached{.address = "10.0.0.1"});
  c.is_seen("a");
  CHECK(c.hosts.sent("a") == Words{"hello", "survey", "inspect"});
  CHECK(c.progress.reached == 1);
  CHECK(c.progress.done == 1);
  c.is_seen("b");
  CHECK(c.hosts.sent("a") == Words{"probe"});
  CHECK(c.hosts.sent("b") == Words{"hello", "survey", "inspect", "probe"});
  c.hosts.say("a", agent::Knocked{{{"b", {0}, ""}, {"@launcher", {}, "connection refused"}}});
  c.has_probed("b");
  CHECK(c.hosts.sent("a") == Words{"close"});
  CHECK(c.hosts.sent("b") == Words{"close"});
  CHECK_FALSE(c.survey->finished());
  const auto found = c.result();
  REQUIRE(found.hosts.size() == 2);
  CHECK(barrier_of(found.hosts[0]) == "none");
  CHECK(found.hosts[0].arrival->address == "10.0.0.1");
  CHECK(found.routes ==
        std::vector<doctor::Route>{{"a", "b", "10.0.0.1", true, ""},
                                   {"a", "the launcher", "10.0.0.1", false, "connection refused"}});
}

TEST_CASE("where all hosts are this machine nobody probes") {
  Clinic c({"a"}, Look::all, {"a"});
  c.is_seen("a");
  CHECK(c.hosts.sent("a") == Words{"hello", "survey", "inspect", "close"});
  CHECK(barrier_of(c.result().hosts[0]) == "none");
}

TEST_CASE("to count GPUs a host is surveyed and not inspected") {
  Clinic c({"a"}, Look::gpus, {"a"});
  c.is_ready("a");
  c.hosts.say("a", agent::Facts{.gpus = {Gpu{}, Gpu{}}});
  CHECK(c.hosts.sent("a") == Words{"hello", "survey", "close"});
  CHECK(c.result().hosts[0].seen->gpus.size() == 2);
}

TEST_CASE("the survey compares clocks as NTP does") {
  Clinic c({"a"}, Look::all, {"a"});
  c.is_ready("a");
  c.hosts.say("a", agent::Facts{});
  c.wall_clock += 10ms;  // 4 ms of these the host has taken, which is 100 ms ahead
  c.hosts.say("a", agent::Inspected{{}, 1'103'000, 1'107'000});
  const auto report = c.result().hosts[0];
  CHECK(report.round_trip == 6ms);
  CHECK(report.clock->ahead == 100ms);
}

TEST_CASE("an agent of another version is a barrier of its own") {
  Clinic c({"a"});
  c.hosts.say("a", agent::Ready{"0.0.1", 7});
  const auto report = c.result().hosts[0];
  CHECK(report.barrier->kind == BarrierKind::version);
  CHECK(report.barrier->why == std::string("it runs version 0.0.1, and this is ") + CORRO_VERSION);
}

TEST_CASE("a login that never ends is given up after the pipe's own time and a little more") {
  Clinic c({"a", "b"});
  c.is_seen("b");
  c.pass(35s - 1ms);
  CHECK(c.progress.done == 1);
  c.pass(1ms);
  CHECK(c.progress.done == 2);
  c.has_probed("b");
  const auto found = c.result();
  CHECK(found.hosts[0].barrier->kind == BarrierKind::unreachable);
  CHECK(barrier_of(found.hosts[0]) == "nothing was heard of it for 35 s");
  CHECK(barrier_of(found.hosts[1]) == "none");
}

TEST_CASE("a host that does not answer the questions is silent") {
  Clinic c({"a"});
  c.is_ready("a");
  c.pass(10s - 1ms);
  CHECK(c.progress.done == 0);
  c.pass(1ms);
  CHECK(c.hosts.line("a").terminated);
  const auto report = c.result().hosts[0];
  CHECK(report.barrier->kind == BarrierKind::silent);
  CHECK(barrier_of(report) == "nothing was heard of it for 10 s");
}

TEST_CASE("hosts that do not say whom they reach are silent, and the others are heard") {
  Clinic c({"a", "b", "c"});
  for (const char* host : {"a", "b", "c"}) c.is_seen(host);
  c.has_probed("b");
  c.pass(8s);
  const auto found = c.result();
  CHECK(barrier_of(found.hosts[0]) == "it did not say which hosts it reaches");
  CHECK(barrier_of(found.hosts[1]) == "none");
  CHECK(barrier_of(found.hosts[2]) == "it did not say which hosts it reaches");
}

TEST_CASE("what the pipe says of a host is its barrier, whatever comes after") {
  Clinic c({"a"});
  c.hosts.say("a", agent::Unreached{BarrierKind::refused, "no key fits", "ssh-add"});
  c.hosts.end("a", "its agent exited with code 1");
  const auto report = c.result().hosts[0];
  CHECK(report.barrier == doctor::Barrier{BarrierKind::refused, "no key fits", "ssh-add"});
}

TEST_CASE("a host is lost in each phase: before it was reached it cannot run our program") {
  const auto lost = [](auto reach) {
    Clinic c({"a"});
    reach(c);
    c.hosts.end("a", "its agent was killed by SIGKILL");
    const auto report = c.result().hosts[0];
    CHECK(barrier_of(report) == "its agent was killed by SIGKILL");
    return report.barrier->kind;
  };
  CHECK(lost([](Clinic&) {}) == BarrierKind::machine);
  CHECK(lost([](Clinic& c) { c.hosts.say("a", agent::Reached{}); }) == BarrierKind::lost);
  CHECK(lost([](Clinic& c) { c.is_ready("a"); }) == BarrierKind::lost);
  CHECK(lost([](Clinic& c) { c.is_seen("a"); }) == BarrierKind::lost);
}

TEST_CASE("a session that cannot be started does not hold up the others") {
  FakeHosts hosts;
  hosts.cannot_start["a"] = "Resource temporarily unavailable";
  JobSpec spec;
  spec.hosts = {{"a", 1}, {"b", 1}};
  spec.np = 2;
  HostSurvey survey(spec, {.here = {"a", "b"},
                           .key = {},
                           .launcher_doors = {},
                           .now = hosts.now(),
                           .wall_clock = [] { return 0us; },
                           .open = hosts.open(),
                           .watch = {}});
  survey.begin();
  hosts.pass(1s, survey);
  hosts.say("b", agent::Ready{CORRO_VERSION, 7});
  hosts.say("b", agent::Facts{});
  hosts.say("b", agent::Inspected{});
  hosts.end("b");
  hosts.pass(0s, survey);
  REQUIRE(survey.finished());
  const auto found = survey.take_result();
  CHECK(found.hosts[0].barrier ==
        doctor::Barrier{BarrierKind::machine, "Resource temporarily unavailable", ""});
  CHECK(barrier_of(found.hosts[1]) == "none");
}

TEST_CASE("a host that does not go is ended by force, and at last left alone") {
  Clinic c({"a"}, Look::all, {"a"});
  c.is_seen("a");
  CHECK(c.hosts.sent("a").back() == "close");
  c.pass(2s);
  CHECK(c.hosts.line("a").terminated);
  CHECK_FALSE(c.survey->finished());
  c.pass(2s);
  CHECK(c.survey->finished());
  CHECK(barrier_of(c.survey->take_result().hosts[0]) == "none");
}

}  // namespace corro::launcher
