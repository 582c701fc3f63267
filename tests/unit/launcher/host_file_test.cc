#include <fmt/format.h>
#include <rapidcheck/catch.h>

#include "hosts_gen.h"
#include "launcher/hosts/hosts.h"
#include "launcher/plan/plan.h"

namespace corro::launcher {

namespace {

using Hosts = std::vector<HostSpec>;
using Notes = std::vector<std::string>;
using namespace std::literals;

HostList list_of(std::string_view text) {
  const auto list = parse_host_file({"hosts.txt", text});
  if (!list) FAIL(list.error().text());
  return *list;
}

Hosts hosts_of(std::string_view text) {
  return list_of(text).hosts;
}

// Without the "hosts.txt:" in front.
std::string complaint_about(std::string_view text) {
  const auto list = parse_host_file({"hosts.txt", text});
  if (list) return "none";
  CHECK(list.error().code() == Errc::invalid_input);
  REQUIRE(list.error().text().starts_with("hosts.txt:"));
  return list.error().text().substr(10);
}

// Of which a host file of Open MPI knows none.
Hosts without_addresses(Hosts hosts) {
  for (HostSpec& host : hosts) host.address.clear();
  return hosts;
}

}  // namespace

TEST_CASE("a host file is read in whichever grammar it is written") {
  const Hosts two = {{"a", 4}, {"b", 2}};
  for (const auto text : {
           "a slots=4\nb slots=2\n"sv,                          // Horovod, DeepSpeed
           "a slots=4 max_slots=8\nb slots=2 max-slots=2\n"sv,  // Open MPI
           "a slots = 4\nb slots= 2 max_slots =4\n"sv,
           "a cpu=4\nb count=2\n"sv,
           "a:4\nb:2\n"sv,  // Hydra
           "a:4\nb slots=2"sv,
           "a\na\na\na\nb\nb\n"sv,  // a machine file
           "a:4,b:2\n"sv,           // -H's
           "a:4, b:2\n"sv,
       })
    CHECK(hosts_of(text) == two);
  CHECK(hosts_of("n[1-2]:8\n") == Hosts{{"n1", 8}, {"n2", 8}});
  CHECK(hosts_of("n[1-2],m slots=3\n") == Hosts{{"n1", 3}, {"n2", 3}, {"m", 3}});
  CHECK(hosts_of("n[01-02],login") == Hosts{{"n01"}, {"n02"}, {"login"}});
}

TEST_CASE("comments, blank lines, CRLF and a byte-order mark are fine") {
  CHECK(hosts_of("\xEF\xBB\xBF# the cluster\r\n\r\n  a slots=4 # the first\r\n\tb:2\r\n"
                 "c#d\n// Open MPI has these, too\nd // as here\n\n") ==
        Hosts{{"a", 4}, {"b", 2}, {"c"}, {"d"}});
}

TEST_CASE("a host may have a user, before it or after") {
  CHECK(hosts_of("ann@a:4\nb slots=2 user=bob\nc username=cy\nann@d user=ann") ==
        Hosts{{"a", 4, "ann"}, {"b", 2, "bob"}, {"c", 0, "cy"}, {"d", 0, "ann"}});
}

TEST_CASE("an IPv6 address needs no brackets where slots follow, as in Open MPI") {
  CHECK(hosts_of("[2001:db8::1]:4\n2001:db8::2 slots=2\nann@::3 slots=1\n[::4]\n") ==
        Hosts{{"2001:db8::1", 4}, {"2001:db8::2", 2}, {"::3", 1, "ann"}, {"::4"}});
}

TEST_CASE("only where every line is bare is a line a slot") {
  CHECK(hosts_of("a\nb\n") == Hosts{{"a", 0}, {"b", 0}});
  CHECK(hosts_of("a\nb\na\n") == Hosts{{"a", 2}, {"b", 1}});
  CHECK(hosts_of("a\nb\na\nc:2\n") == Hosts{{"a", 2}, {"b", 0}, {"c", 2}});
}

TEST_CASE("what has no effect here is said once") {
  const HostList list =
      list_of("a\nb:4 binding=user:0,1 ifname=ib0\nc binding=core\nd max_slots=4");
  CHECK(list.hosts == Hosts{{"a"}, {"b", 4}, {"c"}, {"d"}});
  CHECK(list.notes == Notes{"hosts.txt:4: 'max_slots=' has no effect here",
                            "hosts.txt:2: 'binding=' has no effect here (2 times)",
                            "hosts.txt:2: 'ifname=' has no effect here"});
  CHECK(list_of("a slots=2 max_slots=4").notes.empty());
}

TEST_CASE("what is wrong in a host file is shown, with what was probably meant") {
  const auto [text, complaint] = GENERATE(table<std::string, std::string>({
      {"", " no host is named"},
      {"# nobody\n\n", " no host is named"},
      {"a\n\n  node01 slots=four\n",
       "3:16: slots must be a number from 0 to 1048576\n"
       "    node01 slots=four\n"
       "                 ^~~~\n"
       "  Did you mean 'slots=4'?"},
      {"a slots=4,\nb slots=4\n",
       "1:9: slots must be a number from 0 to 1048576\n"
       "  a slots=4,\n"
       "          ^~\n"
       "  Did you mean 'slots=4'?"},
      {"a slots=0", " no host is named"},
      {"a slots=-1", "1:9: slots must be a number from 0 to 1048576\n  a slots=-1\n          ^~"},
      {"a slots=", "1:9: a value is missing after 'slots='\n  a slots=\n          ^"},
      {"a slots= # 4", "1:10: a value is missing after 'slots='\n  a slots= # 4\n           ^"},
      {"a slot=4",
       "1:3: 'slot' is not known here\n"
       "  a slot=4\n"
       "    ^~~~\n"
       "  Did you mean 'slots=4'?"},
      {"a Slots = 4",
       "1:3: 'Slots' is not known here\n"
       "  a Slots = 4\n"
       "    ^~~~~\n"
       "  Did you mean 'slots=4'?"},
      {"a gpus=4",
       "1:3: 'gpus' is not known here\n"
       "  a gpus=4\n"
       "    ^~~~\n"
       "  A host may have 'slots=', 'max_slots=' and 'user='."},
      {"a slots",
       "1:3: expected 'slots=' and a number, or the end of the line\n"
       "  a slots\n"
       "    ^~~~~\n"
       "  Did you mean 'slots='?"},
      {"a 4",
       "1:3: what follows the host has a name\n"
       "  a 4\n"
       "    ^\n"
       "  Did you mean 'slots=4'?"},
      {"a:4 b:4",
       "1:5: expected 'slots=' and a number, or the end of the line\n"
       "  a:4 b:4\n"
       "      ^~~\n"
       "  Each host has a line of its own."},
      {"a:4 slots=2", "1:11: ':4' gave the slots before\n  a:4 slots=2\n            ^"},
      {"a slots=4 cpu=2", "1:11: this was said before\n  a slots=4 cpu=2\n            ^~~~~"},
      {"a slots=4 max_slots=2",
       "1:9: these are more slots than 'max_slots=2' allows\n"
       "  a slots=4 max_slots=2\n"
       "          ^"},
      {"b\na:4 max-slots=2",
       "2:1: these are more slots than 'max_slots=2' allows\n"
       "  a:4 max-slots=2\n"
       "  ^~~"},
      {"ann@a user=bob", "1:12: 'ann@' gave the user before\n  ann@a user=bob\n             ^~~"},
      {"-x@::1 slots=2", "1:1: a user name cannot begin with '-'\n  -x@::1 slots=2\n  ^"},
      {"a user=-x", "1:8: a user name cannot begin with '-'\n  a user=-x\n         ^"},
      {"a\n@more.txt", "2:1: a host file cannot name another one\n  @more.txt\n  ^~~~~~~~~"},
      {"a:4,\nb:4",
       "1:4: a host is missing after the last comma\n  a:4,\n     ^\n"
       "  Leave the comma out."},
      {",a", "1:1: a host is missing before this comma\n  ,a\n  ^"},
      {"2001:db8::1",
       "1:1: an IPv6 address stands in brackets\n"
       "  2001:db8::1\n"
       "  ^~~~~~~~~~~\n"
       "  Did you mean '[2001:db8::1]'?"},
      {"a\nn[01-16:4 # all\n", "2:2: this bracket is not closed\n  n[01-16:4 # all\n   ^"},
      {"a=4", "1:2: '=' does not belong in a host name\n  a=4\n   ^\n  Did you mean 'a:4'?"},
      {"a\nb\0c\n"s,
       "2:2: the byte 0x00 does not belong in a host name\n  b?c\n   ^\n"
       "  Did you mean 'bc'?"},
      {"a # caf\xE9\n",
       "1:8: the byte 0xe9 does not belong in a host file\n  a # caf?\n         ^"},
      {"\xFF\xFE"
       "a\0\n\0"s,
       "1:1: this is UTF-16; a host file is UTF-8\n  ??a?\n  ^~"},
      {"x@a\ny@a",
       "2:1: 'a' was named with the user 'x' before\n  y@a\n  ^~~\n  One host has one user."},
      {"n[0-9999999999] slots=4",
       "1:1: these are more than 131072 hosts\n  n[0-9999999999] slots=4\n  ^~~~~~~~~~~~~~~"},
  }));
  CHECK(complaint_about(text) == complaint);
}

TEST_CASE("what was printed for Open MPI is read as it was") {
  CHECK(print_hosts(Hosts{{"a", 4}, {"b", 0}, {"::1", 2, "ann"}, {"::2", 0}},
                    HostFormat::openmpi) == "a slots=4\nb\nann@::1 slots=2\n[::2]\n");
  rc::prop("parse ∘ print is the identity", [] {
    const auto hosts = *gen::host_list();
    const auto again = parse_host_file({"hosts.txt", print_hosts(hosts, HostFormat::openmpi)});
    RC_ASSERT(again);
    RC_ASSERT(again->hosts == without_addresses(hosts));
  });
  rc::prop("-H's items, a line each, are a host file (Hydra's)", [] {
    const auto hosts = *gen::host_list();
    std::string text;
    for (const HostSpec& host : hosts) text += print_hosts({&host, 1}, HostFormat::horovod) + "\n";
    RC_ASSERT(parse_host_file({"hosts.txt", text})->hosts == hosts);
  });
  rc::prop("any bytes are a host file or an error", [](const std::string& bytes) {
    if (const auto list = parse_host_file({"hosts.txt", bytes}))
      RC_ASSERT(
          parse_host_file({"hosts.txt", print_hosts(list->hosts, HostFormat::openmpi)})->hosts ==
          without_addresses(list->hosts));
  });
}

TEST_CASE("a long host file is read and planned") {
  constexpr int kLines = 100'000;
  std::string text;
  for (int i = 0; i < kLines; ++i) text += fmt::format("node{:06}.cluster.example slots=8\n", i);
  const auto hosts = hosts_of(text);
  REQUIRE(hosts.size() == kLines);
  CHECK(hosts.back() == HostSpec{"node099999.cluster.example", 8});
  const auto plan = make_plan(hosts, 8 * kLines, 0);
  REQUIRE(plan);
  CHECK(plan->slots.back().cross_size == kLines);
}

}  // namespace corro::launcher
