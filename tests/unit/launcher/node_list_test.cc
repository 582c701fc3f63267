#include "launcher/hosts/node_list.h"

#include <rapidcheck/catch.h>

#include "hosts_gen.h"
#include "launcher/hosts/hosts.h"

namespace corro::launcher {

namespace {

using Names = std::vector<std::string>;

Names names_of(std::string_view text) {
  const auto names = parse_node_list({"nodes", text});
  if (!names) FAIL(names.error().text());
  return *names;
}

std::string complaint_about(std::string_view text) {
  const auto names = parse_node_list({"nodes", text});
  if (names) return "none";
  CHECK(names.error().code() == Errc::invalid_input);
  return names.error().text();
}

std::string folded(const Names& names) {
  std::vector<HostSpec> hosts;
  for (const std::string& name : names) hosts.push_back({name});
  return print_hosts(hosts, HostFormat::slurm);
}

}  // namespace

TEST_CASE("a node list stands for its names, the last bracket running fastest") {
  CHECK(names_of("login") == Names{"login"});
  CHECK(names_of("node[01-03,20],login1") ==
        Names{"node01", "node02", "node03", "node20", "login1"});
  CHECK(names_of("r[1-2]n[3-4]x") == Names{"r1n3x", "r1n4x", "r2n3x", "r2n4x"});
  CHECK(names_of("[1-2]") == Names{"1", "2"});
  CHECK(names_of("n[7]") == Names{"n7"});
  CHECK(names_of("n[3,1-2,1]") == Names{"n3", "n1", "n2", "n1"});
}

TEST_CASE("numbers have the zeros that the first one has") {
  CHECK(names_of("n[9-11]") == Names{"n9", "n10", "n11"});
  CHECK(names_of("n[09-11]") == Names{"n09", "n10", "n11"});
  CHECK(names_of("n[098-101]") == Names{"n098", "n099", "n100", "n101"});
  CHECK(names_of("n[99-101]") == Names{"n99", "n100", "n101"});
  CHECK(names_of("n[01-2]") == Names{"n01", "n02"});
  CHECK(names_of("n[007]") == Names{"n007"});
  CHECK(names_of("n[999999999999999998-999999999999999999]").size() == 2);
}

TEST_CASE("what is wrong in a node list is shown") {
  const auto [text, complaint] = GENERATE(table<std::string, std::string>({
      {"n[3-1]",
       "nodes: a range runs from the smaller number to the larger\n"
       "  n[3-1]\n"
       "    ^~~\n"
       "  Did you mean '1-3'?"},
      {"n[1,9-011]",
       "nodes: both ends of a range are filled with zeros to the same width, or neither is\n"
       "  n[1,9-011]\n"
       "      ^~~~~\n"
       "  Did you mean '009-011'?"},
      {"n[]", "nodes: a number is missing in the brackets\n  n[]\n    ^"},
      {"n[1,]", "nodes: a number is missing in the brackets\n  n[1,]\n      ^"},
      {"n[-2]", "nodes: a number is missing in the brackets\n  n[-2]\n    ^"},
      {"n[1-]", "nodes: a number is missing in the brackets\n  n[1-]\n      ^"},
      {"n[1-2-3]",
       "nodes: brackets hold numbers and ranges of numbers, like '[01-16,20]'\n"
       "  n[1-2-3]\n"
       "       ^"},
      {"n[a-c]",
       "nodes: brackets hold numbers and ranges of numbers, like '[01-16,20]'\n"
       "  n[a-c]\n"
       "    ^"},
      {"n[1,[2]]",
       "nodes: brackets hold numbers and ranges of numbers, like '[01-16,20]'\n"
       "  n[1,[2]]\n"
       "      ^"},
      {"n[1 - 3]",
       "nodes: brackets hold numbers and ranges of numbers, like '[01-16,20]'\n"
       "  n[1 - 3]\n"
       "     ^\n"
       "  Did you mean 'n[1-3]'?"},
      {"n[1-3", "nodes: this bracket is not closed\n  n[1-3\n   ^\n  Did you mean 'n[1-3]'?"},
      {"n1]", "nodes: ']' does not belong in a host name\n  n1]\n    ^"},
      {"n[1000000000000000000]",
       "nodes: a number in brackets has at most 18 digits\n"
       "  n[1000000000000000000]\n"
       "    ^~~~~~~~~~~~~~~~~~~"},
      {"a:4", "nodes: a node list has names only\n  a:4\n  ^~~"},
      {"x,u@a", "nodes: a node list has names only\n  x,u@a\n    ^~~"},
      {"", "nodes: no host is named\n  \n  ^"},
      {"a,,b", "nodes: a host is missing between these commas\n  a,,b\n   ^~"},
      {"a,n[0-131071]",
       "nodes: these are more than 131072 hosts\n  a,n[0-131071]\n    ^~~~~~~~~~~"},
  }));
  CHECK(complaint_about(text) == complaint);
}

TEST_CASE("neighbours that differ in their last number only are folded") {
  CHECK(folded({"node01", "node02", "node03", "node04", "node07", "login"}) ==
        "node[01-04,07],login");
  CHECK(folded({"a"}) == "a");
  CHECK(folded({"a", "b"}) == "a,b");
  CHECK(folded({"n9", "n10", "n11"}) == "n[9-11]");
  CHECK(folded({"n09", "n10", "n011"}) == "n[09-10,011]");
  CHECK(folded({"n2", "n1"}) == "n[2,1]");
  CHECK(folded({"r1n1.x", "r1n2.x", "r2n1.x", "r2n2.x"}) == "r1n[1-2].x,r2n[1-2].x");
  CHECK(folded({"10.0.0.7", "10.0.0.8"}) == "10.0.0.[7-8]");
  CHECK(folded({"2001:db8::1", "2001:db8::2"}) == "[2001:db8::1],[2001:db8::2]");
  CHECK(folded({"n1000000000000000001", "n1000000000000000002"}) ==
        "n1000000000000000001,n1000000000000000002");
  CHECK(folded({"n999999999999999999", "n1000000000000000000"}) ==
        "n999999999999999999,n1000000000000000000");
}

TEST_CASE("what was folded stands for the same names") {
  rc::prop("expand ∘ fold is the identity", [] {
    const auto names = *rc::gen::nonEmpty(rc::gen::container<Names>(gen::name()));
    RC_ASSERT(names_of(folded(names)) == names);
  });
  rc::prop("for numbers with zeros or without, too", [] {
    Names names;
    for (const int n :
         *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(95, 105)))) {
      const auto digits = std::to_string(n);
      names.push_back("n" + (*rc::gen::arbitrary<bool>() ? "0" + digits : digits) + "x");
    }
    RC_ASSERT(names_of(folded(names)) == names);
  });
  rc::prop("any bytes are a node list or an error", [](const std::string& bytes) {
    if (const auto names = parse_node_list({"nodes", bytes}))
      RC_ASSERT(names_of(folded(*names)) == *names);
  });
}

}  // namespace corro::launcher
