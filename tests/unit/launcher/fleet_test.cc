#include "launcher/fleet/fleet.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "fake_session.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

// Writes down what it is told.
class Recorder : public FleetClient {
 public:
  void on_reached(const std::string& host, const agent::Reached&) override {
    note("reached", host);
  }
  void on_ready(const std::string& host, const agent::Ready&) override { note("ready", host); }
  void on_surveyed(const std::string& host, const agent::Facts&) override {
    note("surveyed", host);
  }
  void on_probed(const std::string& host, const agent::Knocked&) override { note("probed", host); }
  void on_message(const std::string& host, const agent::Up&, std::uint64_t) override {
    note("message", host);
  }
  void on_not_started(const std::string& host, const Error& why) override {
    note("not started", host, why.text());
  }
  void on_unreachable(const std::string& host, const agent::Unreached& unreached) override {
    note("unreachable", host, unreached.why);
  }
  void on_given_up(const std::string& host, Reason, const std::string& why) override {
    note("given up", host, why);
  }
  void on_gone(const std::string& host, const std::string& why) override {
    note("gone", host, why);
  }

  Words take() { return std::exchange(words_, {}); }

 private:
  void note(const char* what, const std::string& host, const std::string& why = {}) {
    words_.push_back(fmt::format("{} {}{}{}", host, what, why.empty() ? "" : ": ", why));
  }
  Words words_;
};

struct Scene {
  explicit Scene(const Words& names, Fleet::Options options = {})
      : fleet(hosts_of(names), options, hosts.now(), hosts.open(), client) {
    fleet.open();
  }

  // "@a" is this machine.
  static std::vector<Fleet::Host> hosts_of(const Words& names) {
    std::vector<Fleet::Host> out;
    for (const std::string& name : names) {
      const bool here = name.front() == '@';
      out.push_back({here ? name.substr(1) : name, here});
    }
    return out;
  }

  void is_ready(const std::string& host) { hosts.say(host, agent::Ready{CORRO_VERSION, 7}); }
  void is_surveyed(const std::string& host) {
    is_ready(host);
    hosts.say(host, agent::Facts{});
  }
  void is_probed(const std::string& host) {
    is_surveyed(host);
    hosts.say(host, agent::Knocked{});
  }
  void pass(Duration d) { hosts.pass(d, fleet); }
  // Every second a word of each, as agents answer to leases.
  void pass_with_answers(Duration d, const Words& from) {
    for (auto left = d; left > 0s; left -= 1s) {
      for (const std::string& host : from) hosts.say(host, agent::Alive{});
      pass(1s);
    }
  }

  FakeHosts hosts;
  Recorder client;
  Fleet fleet;
};

// The phases in which a host has a session, and how it gets there.
const std::vector<std::pair<HostPhase, std::function<void(Scene&)>>> kPhases = {
    {HostPhase::connecting, [](Scene&) {}},
    {HostPhase::ready, [](Scene& s) { s.is_ready("a"); }},
    {HostPhase::surveyed, [](Scene& s) { s.is_surveyed("a"); }},
    {HostPhase::probed, [](Scene& s) { s.is_probed("a"); }},
    {HostPhase::unreachable,
     [](Scene& s) {
       s.hosts.say("a", agent::Unreached{agent::Barrier::refused, "no key fits", ""});
     }},
    {HostPhase::abandoned,
     [](Scene& s) {
       s.is_ready("a");
       s.hosts.say("a", agent::Ending{"its guard was killed"});
     }},
    {HostPhase::closing, [](Scene& s) { s.fleet.close("a"); }},
};

}  // namespace

TEST_CASE("a host says hello, is surveyed, probes, and goes") {
  Scene s({"a"});
  CHECK(s.hosts.sent("a") == Words{"hello"});
  s.hosts.say("a", agent::Reached{});
  s.is_ready("a");
  s.hosts.say("a", agent::Facts{});
  s.hosts.say("a", agent::Knocked{});
  s.hosts.say("a", agent::Knocked{});  // of a second round
  s.hosts.say("a", agent::Started{0, 9});
  CHECK(s.client.take() ==
        Words{"a reached", "a ready", "a surveyed", "a probed", "a probed", "a message"});
  s.fleet.close("a");
  CHECK(s.hosts.sent("a") == Words{"close"});
  CHECK(s.fleet.phase("a") == HostPhase::closing);
  s.hosts.end("a");
  CHECK(s.client.take() == Words{"a gone: it closed the connection"});
  CHECK(s.fleet.phase("a") == HostPhase::gone);
}

TEST_CASE("the hello has the terms of the lease and the workers' grace") {
  Scene s({"a"}, {.lease = {3s, 1s}, .grace = 1500ms, .login_timeout = {}});
  CHECK(s.hosts.line("a").sent.front() == agent::Down(agent::Hello{CORRO_VERSION, 3000, 1500}));
}

TEST_CASE("no more hosts log in at once than allowed, and each that gets on makes room") {
  Scene s({"a", "b", "c", "d", "e"}, {.logins_at_once = 2, .lease = {}, .login_timeout = {}});
  CHECK(s.hosts.opened == Words{"a", "b"});
  s.is_ready("b");
  CHECK(s.hosts.opened == Words{"a", "b", "c"});
  // One that is refused logs in until its session has ended.
  s.hosts.say("a", agent::Unreached{agent::Barrier::refused, "no key fits", ""});
  CHECK(s.hosts.opened == Words{"a", "b", "c"});
  s.hosts.end("a");
  CHECK(s.hosts.opened == Words{"a", "b", "c", "d"});
  s.is_ready("c");
  s.is_ready("d");
  CHECK(s.hosts.opened == Words{"a", "b", "c", "d", "e"});
}

TEST_CASE("this machine needs no login, and waits for none") {
  Scene s({"a", "@here", "b"}, {.logins_at_once = 2, .lease = {}, .login_timeout = {}});
  CHECK(s.hosts.opened == Words{"a", "here", "b"});
}

TEST_CASE("a session that cannot be started is told of from the loop, and the others go on") {
  FakeHosts hosts;
  hosts.cannot_start["a"] = "Resource temporarily unavailable";
  Recorder client;
  Fleet fleet({{"a", true}, {"b", true}}, {}, hosts.now(), hosts.open(), client);
  fleet.open();
  CHECK(client.take().empty());
  hosts.pass(0s, fleet);
  CHECK(client.take() == Words{"a not started: Resource temporarily unavailable"});
  CHECK(fleet.phase("a") == HostPhase::unreachable);
  CHECK(fleet.phase("b") == HostPhase::connecting);
  fleet.close("a");
  CHECK(client.take().empty());
  hosts.pass(0s, fleet);
  CHECK(client.take() == Words{"a gone: it was not begun"});
}

TEST_CASE("an agent of another version is turned away") {
  Scene s({"a", "b"});
  s.hosts.say("a", agent::Ready{"0.0.1", 7});
  CHECK(s.client.take() ==
        Words{fmt::format("a given up: it runs version 0.0.1, and this is {}", CORRO_VERSION)});
  CHECK(s.hosts.line("a").terminated);
  CHECK(s.fleet.phase("a") == HostPhase::abandoned);
  s.pass(60s);  // its silence is no news
  s.hosts.end("a", "its agent exited with code 0");
  CHECK(s.client.take() == Words{"a gone: its agent exited with code 0"});
}

TEST_CASE("leases are renewed every second, of hosts that are not ready too") {
  Scene s({"a", "b"});
  s.is_ready("a");
  s.pass_with_answers(10s, {"a"});
  CHECK(s.hosts.leases("a") == 10);
  CHECK(s.hosts.leases("b") == 10);
}

TEST_CASE("a host that is silent for the length of its lease is given up, once") {
  Scene s({"a", "b"});
  s.is_ready("a");
  s.is_ready("b");
  s.client.take();
  s.pass_with_answers(5s, {"a"});
  CHECK(s.client.take().empty());
  s.pass_with_answers(1s, {"a"});
  CHECK(s.client.take() == Words{"b given up: it was not heard of for 5.0 s"});
  CHECK(s.hosts.line("b").terminated);
  CHECK_FALSE(s.hosts.line("a").terminated);
  s.pass_with_answers(20s, {"a"});
  CHECK(s.client.take().empty());
}

TEST_CASE("whatever a host says renews it") {
  Scene s({"a"});
  s.is_ready("a");
  s.client.take();
  for (int i = 0; i < 10; ++i) {
    s.pass(4s);
    s.hosts.say("a", agent::Output{});
  }
  CHECK(s.client.take() == Words(10, "a message"));
}

TEST_CASE("a launcher that was stopped itself gives nobody up for it") {
  Scene s({"a"});
  s.is_ready("a");
  s.fleet.hold();
  CHECK(s.hosts.sent("a") == Words{"hello", "hold"});
  CHECK(s.hosts.line("a").flushed);
  s.client.take();
  s.pass(1h);
  s.fleet.resume();
  CHECK(s.hosts.sent("a") == Words{"resume"});
  s.pass(4s);
  CHECK(s.client.take().empty());
}

TEST_CASE("silence counts for nothing where the client has deadlines of its own") {
  Scene s({"a"}, {.lease = {}, .login_timeout = {}, .gives_up_silent_hosts = false});
  s.is_ready("a");
  s.client.take();
  s.pass(1h);
  CHECK(s.client.take().empty());
}

TEST_CASE("a login that never ends is given up, and the next host gets its turn") {
  Scene s({"a", "b"}, {.logins_at_once = 1, .lease = {}, .login_timeout = 35s});
  s.pass(35s - 1ms);
  CHECK(s.client.take().empty());
  s.pass(1ms);
  CHECK(s.client.take() == Words{"a unreachable: nothing was heard of it for 35 s"});
  CHECK(s.hosts.line("a").terminated);
  CHECK(s.hosts.opened == Words{"a"});
  s.hosts.end("a", "its guard was killed by SIGTERM");
  CHECK(s.hosts.opened == Words{"a", "b"});
  s.is_ready("b");
  s.client.take();
  s.pass_with_answers(60s, {"b"});  // b has logged in
  CHECK(s.client.take().empty());
}

TEST_CASE("a host is lost in each phase, and told of once") {
  for (const auto& [phase, reach] : kPhases) {
    Scene s({"a", "@b"});
    reach(s);
    REQUIRE(s.fleet.phase("a") == phase);
    s.client.take();
    s.hosts.end("a", "its agent was killed by SIGKILL");
    CHECK(s.client.take() == Words{"a gone: its agent was killed by SIGKILL"});
    CHECK(s.fleet.phase("a") == HostPhase::gone);
    s.hosts.sent("b");
    s.pass(1s);
    CHECK(s.client.take().empty());
  }
}

TEST_CASE("a host is closed in each phase: on the way by force, else by asking its agent") {
  for (const auto& [phase, reach] : kPhases) {
    Scene s({"a"});
    reach(s);
    s.hosts.sent("a");
    if (phase == HostPhase::closing) continue;
    s.fleet.close("a");
    const bool on_the_way = phase == HostPhase::connecting || phase == HostPhase::unreachable;
    CHECK(s.hosts.line("a").terminated == on_the_way);
    CHECK(s.hosts.sent("a") == (on_the_way ? Words{} : Words{"close"}));
    CHECK(s.fleet.phase("a") == HostPhase::closing);
  }
}

TEST_CASE("after a close no further host is opened, and those that wait end at once") {
  Scene s({"a", "b", "c"}, {.logins_at_once = 1, .lease = {}, .login_timeout = {}});
  s.fleet.close("a");
  s.hosts.end("a");
  s.client.take();
  CHECK(s.hosts.opened == Words{"a"});
  s.fleet.close("b");
  s.fleet.close("c");
  s.pass(0s);
  CHECK(s.client.take() == Words{"b gone: it was not begun", "c gone: it was not begun"});
}

TEST_CASE("what comes too late has no edge, and is passed over") {
  Scene s({"@a"});
  s.fleet.close("a");
  s.client.take();
  s.is_ready("a");
  s.hosts.say("a", agent::Facts{});
  s.hosts.say("a", agent::Knocked{});
  CHECK(s.client.take().empty());
  CHECK(s.fleet.phase("a") == HostPhase::closing);
  s.hosts.say("a", agent::Exited{});  // but what becomes of workers is told to the last
  CHECK(s.client.take() == Words{"a message"});
}

TEST_CASE("an agent that gives up by itself is heard until it goes") {
  Scene s({"a"});
  s.is_ready("a");
  s.client.take();
  s.hosts.say("a", agent::Ending{"its agent got SIGTERM"});
  s.hosts.say("a", agent::Exited{});
  CHECK(s.client.take() == Words{"a given up: its agent got SIGTERM", "a message"});
  CHECK_FALSE(s.hosts.line("a").terminated);
  s.pass(6s);
  CHECK(s.client.take() == Words{"a given up: it was not heard of for 5.0 s"});
}

TEST_CASE("a host is ended by force, in whatever phase it is") {
  for (const auto& [phase, reach] : kPhases) {
    Scene s({"a"});
    reach(s);
    s.fleet.terminate("a");
    CHECK(s.hosts.line("a").terminated);
    CHECK(s.fleet.phase("a") == HostPhase::closing);
  }
}

TEST_CASE("all hosts are in a phase when the last one is") {
  Scene s({"a", "b"});
  s.is_surveyed("a");
  CHECK_FALSE(s.fleet.all_in({HostPhase::surveyed}));
  s.is_probed("b");
  CHECK_FALSE(s.fleet.all_in({HostPhase::surveyed}));
  CHECK(s.fleet.all_in({HostPhase::surveyed, HostPhase::probed}));
}

}  // namespace corro::launcher
