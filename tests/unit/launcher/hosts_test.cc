#include "launcher/hosts/hosts.h"

#include <fmt/format.h>
#include <rapidcheck/catch.h>

namespace kolo {

namespace {

using Hosts = std::vector<HostSpec>;

std::string complaint_about(std::string_view text) {
  const auto hosts = parse_hosts(text);
  if (hosts) return "none";
  CHECK(hosts.error().code() == Errc::invalid_input);
  return hosts.error().text();
}

// Few letters, so that some names come twice.
rc::Gen<std::string> host_name() {
  const auto letters = rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab.-_9")));
  return rc::gen::map(letters, [](std::string name) { return ("h" + name).substr(0, 255); });
}

rc::Gen<HostSpec> host() {
  return rc::gen::apply(
      [](std::string name, int slots) {
        return HostSpec{std::move(name), slots};
      },
      host_name(), rc::gen::inRange(1, 1000));
}

}  // namespace

TEST_CASE("hosts and their slots are read in the order in which they stand") {
  CHECK(*parse_hosts("a:2,b:4") == Hosts{{"a", 2}, {"b", 4}});
  CHECK(*parse_hosts("localhost:2,127.0.0.1:2") == Hosts{{"localhost", 2}, {"127.0.0.1", 2}});
  CHECK(*parse_hosts(" a:2, gpu-07.rack_3.example.org:16 ") ==
        Hosts{{"a", 2}, {"gpu-07.rack_3.example.org", 16}});
}

TEST_CASE("a host that is named twice has the slots of both, in its first place") {
  CHECK(*parse_hosts("a:1,b:2,a:3") == Hosts{{"a", 4}, {"b", 2}});
}

TEST_CASE("names that differ in anything are different hosts") {
  CHECK(parse_hosts("a:1,A:1,a.b:1")->size() == 3);
}

TEST_CASE("what is no list of hosts is said in one sentence") {
  CHECK(complaint_about("") == "'': expected host:slots");
  CHECK(complaint_about("a") == "'a': expected host:slots");
  CHECK(complaint_about("a:1,") == "'': expected host:slots");
  CHECK(complaint_about(",a:1") == "'': expected host:slots");
  CHECK(complaint_about("a:1,,b:1") == "'': expected host:slots");
  CHECK(complaint_about(":1") == "':1': '' is not a host name");
  CHECK(complaint_about("a b:1") == "'a b:1': 'a b' is not a host name");
  CHECK(complaint_about("user@a:1") == "'user@a:1': 'user@a' is not a host name");
  CHECK(complaint_about("::1:4") == "'::1:4': '::1' is not a host name");
  CHECK(complaint_about("$(id):1") == "'$(id):1': '$(id)' is not a host name");
  CHECK(complaint_about("a:") == "'a:': slots must be a number from 1 to 1048576");
  CHECK(complaint_about("a:0") == "'a:0': slots must be a number from 1 to 1048576");
  CHECK(complaint_about("a:-1") == "'a:-1': slots must be a number from 1 to 1048576");
  CHECK(complaint_about("a:+1") == "'a:+1': slots must be a number from 1 to 1048576");
  CHECK(complaint_about("a:1 2") == "'a:1 2': slots must be a number from 1 to 1048576");
  CHECK(complaint_about("a:two") == "'a:two': slots must be a number from 1 to 1048576");
}

TEST_CASE("numbers beyond all measure are refused, one by one and together") {
  CHECK(parse_hosts("a:1048576"));
  CHECK(complaint_about("a:1048577") == "'a:1048577': slots must be a number from 1 to 1048576");
  CHECK(complaint_about("a:99999999999") ==
        "'a:99999999999': slots must be a number from 1 to 1048576");
  CHECK(complaint_about("a:99999999999999999999999999") ==
        "'a:99999999999999999999999999': slots must be a number from 1 to 1048576");
  CHECK(complaint_about("a:1048576,b:1") == "the hosts have more than 1048576 slots together");
  CHECK(complaint_about("a:1048576,a:1") == "the hosts have more than 1048576 slots together");
}

TEST_CASE("a name may be as long as names are") {
  CHECK(parse_hosts(fmt::format("{:a<255}:1", "")));
  CHECK(complaint_about(fmt::format("{:a<256}:1", "")).ends_with("is not a host name"));
}

TEST_CASE("a large text takes no longer than it takes to read") {
  CHECK(complaint_about(std::string(10 << 20, ',')) == "'': expected host:slots");
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += fmt::format("node{}:4,", i);
  many.pop_back();
  CHECK(parse_hosts(many)->size() == 200'000);
}

TEST_CASE("what was printed is read as it was") {
  rc::prop("parse ∘ print is the identity for hosts that differ", [] {
    const auto hosts =
        *rc::gen::uniqueBy<Hosts>(host(), [](const HostSpec& h) { return h.name; }).as("hosts");
    RC_PRE(!hosts.empty());
    const auto again = parse_hosts(print_hosts(hosts));
    RC_ASSERT(again);
    RC_ASSERT(*again == hosts);
  });
  rc::prop("no slot is lost or made when hosts are merged", [] {
    const auto hosts = *rc::gen::nonEmpty(rc::gen::container<Hosts>(host())).as("hosts");
    const auto merged = parse_hosts(print_hosts(hosts));
    RC_ASSERT(merged);
    const auto slots_of = [](const Hosts& all, const std::string& name) {
      int slots = 0;
      for (const HostSpec& h : all) slots += h.name == name ? h.slots : 0;
      return slots;
    };
    for (const HostSpec& h : hosts) RC_ASSERT(slots_of(*merged, h.name) == slots_of(hosts, h.name));
    RC_ASSERT(*parse_hosts(print_hosts(*merged)) == *merged);
  });
  rc::prop("any bytes are hosts or an error", [](const std::string& bytes) {
    if (const auto hosts = parse_hosts(bytes))
      RC_ASSERT(*parse_hosts(print_hosts(*hosts)) == *hosts);
  });
}

TEST_CASE("this machine is known by localhost, 127.x.y.z and its own names, and by no other") {
  const std::set<std::string> names = {"box", "box.example.org", "10.0.0.7"};
  for (const char* host :
       {"localhost", "127.0.0.1", "127.1.2.3", "box", "box.example.org", "10.0.0.7"})
    CHECK(is_this_machine(host, names));
  for (const char* host : {"", "box2", "bo", "10.0.0.70", "example.org", "127.evil.org",
                           "127.0.0.1.org", "localhost.evil.org", "1270.0.0.1"})
    CHECK_FALSE(is_this_machine(host, names));
}

TEST_CASE("this machine's names include the one the system has for it") {
  const auto names = names_of_this_machine();
  CHECK(names.contains("127.0.0.1"));
  CHECK_FALSE(names.contains(""));
}

}  // namespace kolo
