#include <rapidcheck/catch.h>

#include <numeric>

#include "launcher/hosts/hosts.h"

namespace corro::launcher {

namespace {

using Hosts = std::vector<HostSpec>;

const Hosts kHosts = {{"w1", 2}, {"w2", 4}, {"worker3", 1}};

Hosts included(std::string_view text, const Hosts& hosts = kHosts) {
  const auto left = include(hosts, {"--include", text});
  if (!left) FAIL(left.error().text());
  return *left;
}

Hosts excluded(std::string_view text, const Hosts& hosts = kHosts) {
  const auto left = exclude(hosts, {"--exclude", text});
  if (!left) FAIL(left.error().text());
  return *left;
}

}  // namespace

TEST_CASE("what is included stays, in the order of the hosts") {
  CHECK(included("w1@w2:0,2") == Hosts{{"w1", 2}, {"w2", 2, "", {0, 2}}});
  CHECK(included("w2:3,1,3@w1") == Hosts{{"w1", 2}, {"w2", 2, "", {1, 3}}});
  CHECK(included("w2:0,2-3") == Hosts{{"w2", 3, "", {0, 2, 3}}});
  CHECK(included("w[1-2]") == Hosts{{"w1", 2}, {"w2", 4}});
  CHECK(included("w[1-2]:1") == Hosts{{"w1", 1, "", {1}}, {"w2", 1, "", {1}}});
  CHECK(included("w2:0@w2:1") == Hosts{{"w2", 2, "", {0, 1}}});
  CHECK(included("w2:0@w2") == Hosts{{"w2", 4}});
  CHECK(included(" w1 @ w2: 0, 2 ") == Hosts{{"w1", 2}, {"w2", 2, "", {0, 2}}});
  CHECK(included("[::1]:1", {{"::1", 2}}) == Hosts{{"::1", 1, "", {1}}});
  CHECK(included("[::1]", {{"::1", 2}}) == Hosts{{"::1", 2}});
}

TEST_CASE("what is excluded goes, and a host with it that has no slots left") {
  CHECK(excluded("w1@w2:0,2") == Hosts{{"w2", 2, "", {1, 3}}, {"worker3", 1}});
  CHECK(excluded("w1:1,0") == Hosts{{"w2", 4}, {"worker3", 1}});
  CHECK(excluded("a:4", {{"a", 3, "ann", {0, 1, 4}}}) == Hosts{{"a", 2, "ann", {0, 1}}});
}

TEST_CASE("a choice can be narrowed") {
  const Hosts some = included("w2:0,2,3");
  CHECK(included("w2:2,3", some) == Hosts{{"w2", 2, "", {2, 3}}});
  CHECK(excluded("w2:2", some) == Hosts{{"w2", 2, "", {0, 3}}});
  CHECK(include(some, {"--include", "w2:1"}).error().text() ==
        "--include: 'w2' has slots 0, 2, 3\n"
        "  w2:1\n"
        "     ^");
}

TEST_CASE("what cannot be chosen is shown") {
  const auto [text, complaint] = GENERATE(table<std::string, std::string>({
      {"", "--include: a host is missing here\n  \n  ^"},
      {"w1@", "--include: a host is missing here\n  w1@\n     ^"},
      {"w1@workre3",
       "--include: 'workre3' is not among the hosts\n"
       "  w1@workre3\n"
       "     ^~~~~~~\n"
       "  Did you mean 'worker3'?"},
      {"w4",
       "--include: 'w4' is not among the hosts\n"
       "  w4\n"
       "  ^~\n"
       "  There are w1, w2, worker3."},
      {"w1,w2",
       "--include: 'w1,w2' is not among the hosts\n"
       "  w1,w2\n"
       "  ^~~~~\n"
       "  Hosts are parted by '@' here, slots by ','."},
      {"w1@w2:0,7", "--include: 'w2' has slots 0 to 3\n  w1@w2:0,7\n          ^"},
      {"worker3:1", "--include: 'worker3' has slot 0\n  worker3:1\n          ^"},
      {"w2:-1", "--include: slots are numbers or ranges, as in 0,2-3\n  w2:-1\n     ^~"},
      {"w2:99999999999", "--include: 'w2' has slots 0 to 3\n  w2:99999999999\n     ^~~~~~~~~~~"},
      {"w2:", "--include: slots are numbers or ranges, as in 0,2-3\n  w2:\n     ^"},
      {"w2:3-2", "--include: slots are numbers or ranges, as in 0,2-3\n  w2:3-2\n     ^~~"},
      {"w2:2-4", "--include: 'w2' has slots 0 to 3\n  w2:2-4\n     ^~~"},
      {"w[1-9]",
       "--include: 'w3' is not among the hosts\n  w[1-9]\n  ^~\n  There are w1, w2, worker3."},
  }));
  const auto left = include(kHosts, {"--include", text});
  REQUIRE_FALSE(left);
  CHECK(left.error() == Error(Errc::invalid_input, complaint));
}

TEST_CASE("something must be left") {
  CHECK(exclude(kHosts, {"--exclude", "w1@w2:0,1,2,3@worker3"}).error().text() ==
        "--exclude: this leaves no slot on any host\n"
        "  w1@w2:0,1,2,3@worker3\n"
        "  ^~~~~~~~~~~~~~~~~~~~~");
}

TEST_CASE("a slot is included or excluded, never both") {
  rc::prop("the slots that are left and those that are not make the host", [] {
    const auto picked =
        *rc::gen::nonEmpty(rc::gen::unique<std::vector<int>>(rc::gen::inRange(0, 12)));
    std::string text = "a:";
    for (const int slot : picked) text += (text.size() > 2 ? "," : "") + std::to_string(slot);
    const Hosts hosts = {{"a", 12}, {"b", 1}};
    auto slots = included(text, hosts)[0].chosen;
    const auto rest = excluded(text, hosts);
    if (rest[0].name == "a")
      slots.insert(slots.end(), rest[0].chosen.begin(), rest[0].chosen.end());
    std::sort(slots.begin(), slots.end());
    std::vector<int> all(12);
    std::iota(all.begin(), all.end(), 0);
    RC_ASSERT(slots == all);
  });
}

}  // namespace corro::launcher
