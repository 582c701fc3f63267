#include "launcher/network/addressing.h"

#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include "launcher/network/interfaces.h"

namespace corro::launcher {

namespace {

const Door kEth{"eth0", "10.0.0.1", 1, 1000}, kEthV6{"eth0", "fd00::1", 2, 1000},
    kFast{"ib0", "10.1.0.1", 3, 100000}, kBridge{"docker0", "172.17.0.1", 4, 0};

// Three hosts; everyone opens the doors with these places.
Addressing met(const std::vector<Door>& doors, const std::vector<std::uint32_t>& open) {
  Addressing addressing({"a", "b", "c"});
  for (const std::string host : {"a", "b", "c"}) addressing.has_doors(host, doors);
  addressing.has_doors(Addressing::kLauncher, doors);
  for (const std::string host : {"a", "b", "c"}) {
    std::vector<Opening> openings;
    for (const Doorway& doorway : addressing.to_knock_at(host))
      openings.push_back({doorway.host, open, open.empty() ? "refused" : ""});
    addressing.knocked(host, openings);
  }
  return addressing;
}

std::vector<std::string> targets(const Addressing& addressing, const std::string& host) {
  std::vector<std::string> names;
  for (const Doorway& doorway : addressing.to_knock_at(host)) names.push_back(doorway.host);
  return names;
}

}  // namespace

TEST_CASE("everyone knocks at the launcher, at the first host and at the next") {
  std::vector<std::string> hosts = {"a", "b", "c", "d", "e", "f"};
  Addressing addressing(hosts);
  for (const std::string& host : hosts) addressing.has_doors(host, {kEth});
  addressing.has_doors(Addressing::kLauncher, {kEth});
  using Names = std::vector<std::string>;
  CHECK(targets(addressing, "a") == Names{Addressing::kLauncher, "b", "f"});
  CHECK(targets(addressing, "d") == Names{Addressing::kLauncher, "a", "e"});
  CHECK(targets(addressing, "stranger").empty());

  Addressing alone({"a"});
  alone.has_doors("a", {kEth});
  alone.has_doors(Addressing::kLauncher, {kEth});
  CHECK(targets(alone, "a") == Names{Addressing::kLauncher});
}

TEST_CASE("of the addresses that all have reached the fastest counts, version 4 before 6") {
  CHECK(*met({kEthV6, kEth, kFast, kBridge}, {0, 1, 2, 3}).way_to("b") == kFast);
  CHECK(*met({kEthV6, kEth, kFast, kBridge}, {0, 1, 3}).way_to("b") == kEth);
  CHECK(*met({kEthV6, kEth, kFast, kBridge}, {0, 3}).way_to("b") == kEthV6);
  CHECK(*met({kBridge}, {0}).way_to(Addressing::kLauncher) == kBridge);
}

TEST_CASE("a host to whom nobody has to go is known by its best address") {
  Addressing addressing({"a"});
  addressing.has_doors("a", {kBridge, kEth});
  CHECK(*addressing.way_to("a") == kEth);
}

TEST_CASE("who is not reached is named, with who did not reach him and why") {
  Addressing addressing = met({kEth}, {0});
  addressing.knocked("b", {{"a", {}, "connection refused"}});
  const auto way = addressing.way_to("a");
  REQUIRE_FALSE(way);
  CHECK(way.error().host == "b");
  CHECK(way.error().why == "cannot reach host a at 10.0.0.1 (eth0): connection refused");

  const auto launcher = met({kEth}, {}).way_to(Addressing::kLauncher);
  REQUIRE_FALSE(launcher);
  CHECK(launcher.error().why == "cannot reach the launcher at 10.0.0.1 (eth0): refused");
}

TEST_CASE("two who reach a host by different addresses only cannot both work with it") {
  Addressing addressing = met({kEth, kFast}, {0, 1});
  addressing.knocked("b", {{"a", {0}, ""}});
  addressing.knocked("c", {{"a", {1}, ""}});
  const auto way = addressing.way_to("a");
  REQUIRE_FALSE(way);
  CHECK(way.error().why ==
        "is reached by no address that is good for all: 10.0.0.1 (eth0), 10.1.0.1 (ib0)");
}

TEST_CASE("a host without an address says so") {
  CHECK(met({}, {}).way_to("a").error().why == "has no address by which others could reach it");
}

TEST_CASE("interfaces narrow the choice") {
  const std::vector<Door> doors = {kEth, kEthV6, kFast};
  CHECK(narrowed(doors, {}) == doors);
  CHECK(narrowed(doors, std::vector<std::string>{"ib0"}) == std::vector<Door>{kFast});
  CHECK(narrowed(doors, std::vector<std::string>{"wlan0"}).empty());
  CHECK(narrowed(doors, {}, "fd00::1") == std::vector<Door>{kEthV6});
}

TEST_CASE("of named interfaces a host uses those that it has") {
  const std::vector<Door> doors = {kEth, kEthV6, kFast};
  const std::vector<std::string> both = {"ib0", "wlan0", "eth0"};
  CHECK(present(both, doors) == std::vector<std::string>{"ib0", "eth0"});
  CHECK(check_interfaces({}, doors, false));
  CHECK(check_interfaces(both, doors, true));
  const auto alone = check_interfaces(both, doors, false);
  REQUIRE_FALSE(alone);
  CHECK(alone.error().text() ==
        "--network-interfaces: this machine has no interface wlan0 with an address; it has eth0, "
        "ib0");
  CHECK_FALSE(check_interfaces(std::vector<std::string>{"wlan0", "x"}, doors, true));
}

TEST_CASE("what is known from before is tried first, if everybody still has that address") {
  Addressing addressing({"a", "b"});
  for (const char* host : {"a", "b", Addressing::kLauncher})
    addressing.has_doors(host, {kEth, kFast});
  const auto question = addressing.question();
  CHECK_FALSE(addressing.assume({{"a", "10.0.0.1"}, {"b", "10.0.0.1"}}));
  CHECK_FALSE(addressing.assume(
      {{"a", "10.0.0.1"}, {"b", "10.9.9.9"}, {Addressing::kLauncher, "10.0.0.1"}}));
  CHECK(addressing.assume(
      {{"a", "10.0.0.1"}, {"b", "10.1.0.1"}, {Addressing::kLauncher, "10.0.0.1"}}));
  CHECK(addressing.to_knock_at("a") ==
        std::vector<Doorway>{{Addressing::kLauncher, {kEth}}, {"b", {kFast}}});
  CHECK(*addressing.way_to("a") == kEth);
  CHECK(*addressing.way_to("b") == kFast);
  CHECK(addressing.question() == question);
  addressing.has_doors("b", {kEth});
  CHECK(addressing.question() != question);
}

TEST_CASE("what is known from before and not reached any more is forgotten, and all is tried") {
  Addressing addressing({"a", "b"});
  std::map<std::string, std::string> known;
  for (const char* host : {"a", "b", Addressing::kLauncher}) {
    addressing.has_doors(host, {kEth, kFast});
    known[host] = kFast.ip;
  }
  REQUIRE(addressing.assume(known));
  addressing.knocked("a", {{Addressing::kLauncher, {0}, ""}, {"b", {0}, ""}});
  CHECK_FALSE(addressing.is_refuted());
  addressing.knocked("b", {{Addressing::kLauncher, {0}, ""}, {"a", {}, "nobody answers"}});
  REQUIRE(addressing.all_knocked());
  CHECK(addressing.is_refuted());

  addressing.assume_nothing();
  CHECK_FALSE((addressing.all_knocked() || addressing.is_refuted()));
  CHECK(addressing.to_knock_at("a") ==
        std::vector<Doorway>{{Addressing::kLauncher, {kEth, kFast}}, {"b", {kEth, kFast}}});
  addressing.knocked("a", {{Addressing::kLauncher, {0}, ""}, {"b", {0}, ""}});
  addressing.knocked("b", {{Addressing::kLauncher, {0}, ""}, {"a", {0}, ""}});
  CHECK(*addressing.way_to("a") == kEth);
}

TEST_CASE("whoever opened what, an address that is chosen was reached by all who tried") {
  rc::prop("for three hosts", [] {
    const std::vector<Door> doors = {kEth, kEthV6, kFast};
    Addressing addressing({"a", "b", "c"});
    for (const std::string host : {"a", "b", "c"}) addressing.has_doors(host, doors);
    std::map<std::string, std::vector<std::uint32_t>> of_a;
    for (const std::string host : {"b", "c"}) {
      for (std::uint32_t door = 0; door < doors.size(); ++door)
        if (*rc::gen::arbitrary<bool>()) of_a[host].push_back(door);
      addressing.knocked(host, {{"a", of_a[host], "x"}});
    }
    const auto way = addressing.way_to("a");
    for (std::uint32_t door = 0; door < doors.size(); ++door) {
      const auto reached = [&](const std::string& host) {
        return std::count(of_a[host].begin(), of_a[host].end(), door) > 0;
      };
      const bool by_all = reached("b") && reached("c");
      if (way && *way == doors[door]) RC_ASSERT(by_all);
      if (!way) RC_ASSERT(!by_all);
    }
  });
}

}  // namespace corro::launcher
