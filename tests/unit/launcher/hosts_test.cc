#include "launcher/hosts/hosts.h"

#include <fmt/format.h>
#include <rapidcheck/catch.h>

#include <filesystem>
#include <map>

#include "hosts_gen.h"

namespace corro::launcher {

namespace {

using Hosts = std::vector<HostSpec>;

const std::map<std::string, std::string> kFiles = {
    {"hosts.txt", "a slots=2\nb:3 # comment\n"},
    {"bad.txt", "a slots=2\nb slots=two\n"},
    {"noted.txt", "a binding=core\n"},
};

Result<std::string> read_file(const std::string& path) {
  const auto file = kFiles.find(path);
  if (file == kFiles.end())
    return Error(Errc::not_found, fmt::format("opening {}: No such file or directory", path));
  return file->second;
}

Result<HostList> parse(std::string_view text) {
  return parse_hosts({"-H", text}, read_file);
}

Hosts hosts_of(std::string_view text) {
  const auto list = parse(text);
  if (!list) FAIL(list.error().text());
  return list->hosts;
}

// Without the "-H: " in front, and the line that repeats the text.
std::string complaint_about(std::string_view text) {
  const auto list = parse(text);
  if (list) return "none";
  CHECK(list.error().code() == Errc::invalid_input);
  const std::string& all = list.error().text();
  return all.starts_with("-H: ") ? all.substr(4) : all;
}

}  // namespace

TEST_CASE("hosts and their slots are read in the order in which they stand") {
  CHECK(hosts_of("a:2,b:4") == Hosts{{"a", 2}, {"b", 4}});
  CHECK(hosts_of("localhost:2,127.0.0.1:2") == Hosts{{"localhost", 2}, {"127.0.0.1", 2}});
  CHECK(hosts_of(" a:2, gpu-07.rack_3.example.org:16\t") ==
        Hosts{{"a", 2}, {"gpu-07.rack_3.example.org", 16}});
  CHECK(hosts_of("a:04") == Hosts{{"a", 4}});
}

TEST_CASE("a host may come without slots, with a user, as an IPv6 address, or as many") {
  CHECK(hosts_of("a") == Hosts{{"a", 0}});
  CHECK(hosts_of("ann@a:4,j.doe+x@b") == Hosts{{"a", 4, "ann"}, {"b", 0, "j.doe+x"}});
  CHECK(hosts_of("[2001:db8::1]:4,[::1],ann@[::2]:1") ==
        Hosts{{"2001:db8::1", 4}, {"::1", 0}, {"::2", 1, "ann"}});
  CHECK(hosts_of("n[09-11,20]:8") == Hosts{{"n09", 8}, {"n10", 8}, {"n11", 8}, {"n20", 8}});
  CHECK(hosts_of("ann@r[1-2]n[3-4]") ==
        Hosts{{"r1n3", 0, "ann"}, {"r1n4", 0, "ann"}, {"r2n3", 0, "ann"}, {"r2n4", 0, "ann"}});
}

TEST_CASE("a host that is named twice has the slots of both, in its first place") {
  CHECK(hosts_of("a:1,b:2,a:3") == Hosts{{"a", 4}, {"b", 2}});
  CHECK(hosts_of("a,b,a,a") == Hosts{{"a", 3}, {"b", 0}});
  CHECK(hosts_of("a,a:3") == Hosts{{"a", 4}});
  CHECK(hosts_of("n[1-2]:2,n[2-3]") == Hosts{{"n1", 2}, {"n2", 3}, {"n3", 0}});
  CHECK(hosts_of("a:1,ann@a:1,a:1") == Hosts{{"a", 3, "ann"}});
}

TEST_CASE("names that differ in anything are different hosts") {
  CHECK(hosts_of("a:1,A:1,a.b:1").size() == 3);
}

TEST_CASE("a list may name host files") {
  CHECK(hosts_of("@hosts.txt") == Hosts{{"a", 2}, {"b", 3}});
  CHECK(hosts_of("c:1,@hosts.txt,a:1") == Hosts{{"c", 1}, {"a", 3}, {"b", 3}});
  CHECK(parse("@noted.txt")->notes ==
        std::vector<std::string>{"noted.txt:1: 'binding=' has no effect here"});
  CHECK(complaint_about("@bad.txt") ==
        "bad.txt:2:9: slots must be a number from 0 to 1048576\n"
        "  b slots=two\n"
        "          ^~~\n"
        "  Did you mean 'slots=2'?");
  CHECK(complaint_about("a:1,@none.txt") ==
        "opening none.txt: No such file or directory\n"
        "  a:1,@none.txt\n"
        "      ^~~~~~~~~");
  CHECK(complaint_about("@hosts.txt:8") ==
        "a host file says the slots of its hosts itself\n"
        "  @hosts.txt:8\n"
        "  ^~~~~~~~~~~~\n"
        "  Did you mean '@hosts.txt'?");
  CHECK(complaint_about("@") ==
        "the name of a host file is missing after '@'\n"
        "  @\n"
        "  ^");
}

TEST_CASE("what is no list of hosts is shown, with what was probably meant") {
  const auto [text, complaint] = GENERATE(table<std::string, std::string>({
      {"", "no host is named\n  \n  ^"},
      {"  ", "no host is named\n    \n  ^"},
      {"a:1,", "a host is missing after the last comma\n  a:1,\n     ^\n  Leave the comma out."},
      {",a:1", "a host is missing before this comma\n  ,a:1\n  ^"},
      {"a:1, ,b:1", "a host is missing between these commas\n  a:1, ,b:1\n     ^~~"},
      {":1", "a host name is missing here\n  :1\n  ^"},
      {"ann@", "a host name is missing here\n  ann@\n      ^"},
      {"-oX:1", "a host name cannot begin with '-'\n  -oX:1\n  ^"},
      {"-oX@a:1", "a user name cannot begin with '-'\n  -oX@a:1\n  ^"},
      {"a:1;b:1",
       "a host and its slots have one ':' between them\n"
       "  a:1;b:1\n"
       "       ^~\n"
       "  Did you mean 'a:1,b:1'?"},
      {"a;b",
       "';' does not belong in a host name\n"
       "  a;b\n"
       "   ^\n"
       "  Did you mean 'a,b'?"},
      {"x:1,a b:1",
       "hosts are parted by commas, not by blanks\n"
       "  x:1,a b:1\n"
       "       ^\n"
       "  Did you mean 'a,b:1'?"},
      {"a : 4",
       "hosts are parted by commas, not by blanks\n"
       "  a : 4\n"
       "   ^\n"
       "  Did you mean 'a:4'?"},
      {"a slots=4",
       "hosts are parted by commas, not by blanks\n"
       "  a slots=4\n"
       "   ^\n"
       "  Did you mean 'a:4'?"},
      {"a=4", "'=' does not belong in a host name\n  a=4\n   ^\n  Did you mean 'a:4'?"},
      {"$(id):1", "'$' does not belong in a host name\n  $(id):1\n  ^"},
      {"a@b@c", "'@' does not belong in a host name\n  a@b@c\n     ^"},
      {"a:", "the number of slots is missing here\n  a:\n    ^\n  Did you mean 'a'?"},
      {"a:-1", "slots must be a number from 0 to 1048576\n  a:-1\n    ^~"},
      {"a:-1", "slots must be a number from 0 to 1048576\n  a:-1\n    ^~"},
      {"a:+1", "slots must be a number from 0 to 1048576\n  a:+1\n    ^~"},
      {"a:1 2", "hosts are parted by commas, not by blanks\n  a:1 2\n     ^"},
      {"a:four",
       "slots must be a number from 0 to 1048576\n"
       "  a:four\n"
       "    ^~~~\n"
       "  Did you mean 'a:4'?"},
      {"a:4:2",
       "a host and its slots have one ':' between them\n"
       "  a:4:2\n"
       "     ^~\n"
       "  Did you mean 'a:4'?"},
      {"a：4，b：2",
       "'：' does not belong in a host name\n"
       "  a：4，b：2\n"
       "   ^~\n"
       "  Did you mean 'a:4,b:2'?"},
      {"“a”:4", "'“' does not belong in a host name\n  “a”:4\n  ^\n  Did you mean 'a:4'?"},
      {"gpu–1:4",
       "'–' does not belong in a host name\n"
       "  gpu–1:4\n"
       "     ^\n"
       "  Did you mean 'gpu-1:4'?"},
      {"a\xFF:4",
       "the byte 0xff does not belong in a host name\n"
       "  a?:4\n"
       "   ^\n"
       "  Did you mean 'a:4'?"},
      {"::1:4",
       "an IPv6 address stands in brackets\n"
       "  ::1:4\n"
       "  ^~~~~\n"
       "  Did you mean '[::1]:4'?"},
      {"2001:db8::1",
       "an IPv6 address stands in brackets\n"
       "  2001:db8::1\n"
       "  ^~~~~~~~~~~\n"
       "  Did you mean '[2001:db8::1]'?"},
      {"1:2:3:4:5:6:7:8",
       "an IPv6 address stands in brackets\n"
       "  1:2:3:4:5:6:7:8\n"
       "  ^~~~~~~~~~~~~~~\n"
       "  Did you mean '[1:2:3:4:5:6:7:8]'?"},
      {"[::zz]:4", "this is not an IPv6 address\n  [::zz]:4\n   ^~~~"},
      {std::string("[::1\0]:4", 8),
       "this is not an IPv6 address\n  [::1?]:4\n   ^~~~\n  Did you mean '[::1]:4'?"},
      {"[::1]4", "expected ':' and the slots here\n  [::1]4\n       ^"},
      {"[fe80::1%eth0]:4",
       "an address that needs the name of an interface cannot be used\n"
       "  [fe80::1%eth0]:4\n"
       "          ^~~~~"},
      {"[::1:4",
       "this bracket is not closed\n"
       "  [::1:4\n"
       "  ^\n"
       "  Did you mean '[::1]:4'?"},
      {"u1@a:1,u2@a:1",
       "'a' was named with the user 'u1' before\n"
       "  u1@a:1,u2@a:1\n"
       "         ^~~~~~\n"
       "  One host has one user."},
  }));
  CHECK(complaint_about(text) == complaint);
}

TEST_CASE("an argument of several lines is shown by its line") {
  CHECK(parse("a:1\nb:1").error().text() ==
        "-H:1:4: hosts are parted by commas, not by blanks\n"
        "  a:1\n"
        "     ^\n"
        "  Did you mean 'a:1,b:1'?");
  CHECK(hosts_of("a:1,\nb:1\n") == Hosts{{"a", 1}, {"b", 1}});
}

TEST_CASE("numbers beyond all measure are refused, one by one and together") {
  CHECK(parse("a:1048576"));
  for (const char* slots : {"1048577", "99999999999", "99999999999999999999999999"})
    CHECK(complaint_about(fmt::format("a:{}", slots))
              .starts_with("slots must be a number from 0 to 1048576\n"));
  for (const char* text : {"a:1048576,b:1", "a:1048576,a:1", "a:1048576,b", "n[1-2]:1000000"})
    CHECK(complaint_about(text).starts_with("the hosts have more than 1048576 slots together\n"));
}

TEST_CASE("ranges beyond all measure cost nothing") {
  for (const char* text : {"node[0-9999999999]", "a[0-999999999999999999]:8", "n[0-131072]",
                           "n[1-1000][1-1000]", "n[0-131071],m[0-1]", "n[0-131071],n[0-1]",
                           "n[1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9]"})
    CHECK(complaint_about(text).starts_with("these are more than 131072 hosts\n"));
  CHECK(hosts_of("n[1-131072]").size() == 131072);
}

TEST_CASE("a name may be as long as names are") {
  const std::string longest(255, 'a');
  CHECK(hosts_of(longest + ":1,b@" + longest).size() == 1);
  CHECK(complaint_about(longest + "a").starts_with("a name has at most 255 characters\n"));
  CHECK(complaint_about(longest + "b@a").starts_with("a user name has at most 255 characters\n"));
  CHECK(parse(std::string(253, 'a') + "[9-10]"));
  CHECK(complaint_about(std::string(254, 'a') + "[9-10]")
            .starts_with("a name has at most 255 characters\n"));
}

TEST_CASE("a large text takes no longer than it takes to read") {
  CHECK(complaint_about(std::string(10 << 20, ','))
            .starts_with("a host is missing before this comma\n"));
  CHECK(complaint_about(std::string(10 << 20, '[')).starts_with("this bracket is not closed\n"));
  CHECK(complaint_about(std::string(kHostTextLimit + 1, 'a')) ==
        "this is too long for a list of hosts");
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += fmt::format("node{}:4,", i);
  many.pop_back();
  CHECK(hosts_of(many).size() == 100'000);
}

TEST_CASE("what was printed is read as it was") {
  rc::prop("parse ∘ print is the identity for hosts that differ", [] {
    const auto hosts = *gen::host_list();
    RC_ASSERT(parse(print_hosts(hosts, HostFormat::horovod))->hosts == hosts);
  });
  rc::prop("no slot is lost or made when hosts are merged", [] {
    const auto hosts = *rc::gen::nonEmpty(rc::gen::container<Hosts>(rc::gen::construct<HostSpec>(
        rc::gen::element<std::string>("a", "b", "c", "::1"), rc::gen::inRange(1, 9))));
    const auto merged = parse(print_hosts(hosts, HostFormat::horovod));
    RC_ASSERT(merged);
    const auto slots_of = [](const Hosts& all, const std::string& name) {
      int slots = 0;
      for (const HostSpec& h : all) slots += h.name == name ? h.slots : 0;
      return slots;
    };
    for (const HostSpec& h : hosts)
      RC_ASSERT(slots_of(merged->hosts, h.name) == slots_of(hosts, h.name));
  });
  rc::prop("any bytes are hosts or an error", [](const std::string& bytes) {
    if (const auto list = parse(bytes))
      RC_ASSERT(parse(print_hosts(list->hosts, HostFormat::horovod))->hosts == list->hosts);
  });
}

TEST_CASE("this machine is known by localhost, 127.x.y.z and its own names, and by no other") {
  const std::set<std::string> names = {"box", "box.example.org", "10.0.0.7", "2001:db8::7"};
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "box", "box.example.org",
                           "10.0.0.7", "::1", "0:0:0:0:0:0:0:1", "2001:db8::7", "2001:DB8:0::7"})
    CHECK(is_this_machine(host, names));
  for (const char* host :
       {"", "box2", "bo", "10.0.0.70", "example.org", "127.evil.org", "127.0.0.1.org",
        "localhost.evil.org", "1270.0.0.1", "::2", "2001:db8::"})
    CHECK_FALSE(is_this_machine(host, names));
}

TEST_CASE("this machine's names include the one the system has for it") {
  const auto names = names_of_this_machine();
  CHECK(names.contains("127.0.0.1"));
  CHECK_FALSE(names.contains(""));
}

TEST_CASE("a host may have another address for the others than for us") {
  const auto hosts = [](std::string_view text) { return parse_hosts({"-H", text}, nullptr); };
  const auto list = hosts("ann@pub.example/10.0.0.1:4,[2001:db8::1]/[fd00::1],c");
  REQUIRE(list);
  CHECK(list->hosts == std::vector<HostSpec>{{"pub.example", 4, "ann", {}, "10.0.0.1"},
                                             {"2001:db8::1", 0, "", {}, "fd00::1"},
                                             {"c", 0, "", {}, ""}});
  const auto [text, why] = GENERATE(table<std::string, std::string>({
      {"a/b:4", "a numeric address is expected behind '/'"},
      {"a/", "a numeric address is expected behind '/'"},
      {"a/10.0.0.1:", "the number of slots is missing here"},
      {"a/fd00::1", "a numeric address is expected behind '/'"},
      {"a:4/10.0.0.1", "the slots stand behind the address"},
      {"n[1-2]/10.0.0.1:4", "several hosts cannot have the same address"},
      {"a/10.0.0.1,a/10.0.0.2", "'a' was named with the address 10.0.0.1 before"},
  }));
  const auto refused = hosts(text);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text().find(why) != std::string::npos);
}

}  // namespace corro::launcher
