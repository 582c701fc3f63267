#include "launcher/pipe/ssh_config.h"

#include <rapidcheck/catch.h>

#include <map>

#include "launcher/pipe/ssh_destination.h"

namespace corro::launcher {

namespace {

using Words = std::vector<std::string>;

struct Files {
  std::map<std::string, std::string> content;

  SshSurroundings around() const {
    return {"/home/ada", "ada",
            [this](const std::string& path) -> std::optional<std::string> {
              const auto found = content.find(path);
              return found == content.end() ? std::nullopt : std::optional(found->second);
            },
            [this](const std::string& pattern) {
              return content.count(pattern) ? Words{pattern} : Words{};
            },
            [](const std::string& name) {
              return name == "WORK" ? std::optional<std::string>("/work-place") : std::nullopt;
            }};
  }
  SshSettings read(const std::string& host, const std::string& user = "", int port = 0) const {
    return read_ssh_config(host, user, port, around());
  }
  Destination destination(const Target& target) const {
    return destination_of(target, read(target.host, target.user, target.port), around());
  }
};

Files config(const std::string& text) {
  return {{{"/home/ada/.ssh/config", text}}};
}

}  // namespace

TEST_CASE("the first value that fits a host counts") {
  const auto files = config(
      "Port 2000\n"
      "Host w1\n  User one\n  Port 1\n"
      "Host w*\n  User many\n  HostName real-%h\n"
      "Host *\n  User all\n");
  CHECK(files.read("w1").user == "one");
  CHECK(files.read("w1").port == 2000);
  CHECK(files.read("w22").user == "many");
  CHECK(files.read("w22").host_name == "real-w22");
  CHECK(files.read("x").user == "all");
}

TEST_CASE("patterns") {
  const auto fits = [](const char* patterns, const char* host) {
    return config(std::string("Host ") + patterns + "\nUser x\n").read(host).user == "x";
  };
  CHECK(fits("*", ""));
  CHECK(fits("a?c", "abc"));
  CHECK_FALSE(fits("a?c", "ac"));
  CHECK(fits("*.example.org", "a.example.org"));
  CHECK_FALSE(fits("*.example.org", "example.org"));
  CHECK(fits("a*b*c", "aXbbYc"));
  CHECK(fits("b a", "a"));
  CHECK_FALSE(fits("* !a", "a"));
  CHECK_FALSE(fits("!a", "b"));
}

TEST_CASE("how lines may be written") {
  const auto files = config(
      "# a comment\n\n  HOSTNAME = \"a b\"  # why not\n\tport=22\r\nuser\tx\n"
      "UserKnownHostsFile ~/one \"/two three\"\nProxyCommand nc -X = \"%h\" %p %% %r\nUser\n");
  const auto read = files.read("h");
  CHECK(read.host_name == "a b");
  CHECK(read.port == 22);
  CHECK(read.user == "x");
  CHECK(read.user_known_hosts == Words{"/home/ada/one", "/two three"});
  CHECK(read.proxy_command == "nc -X = \"a b\" 22 % x");
}

TEST_CASE("identities are gathered, and their names filled in") {
  const auto files = config(
      "Host h\nIdentityFile ~/.ssh/%r@%h\nIdentityFile ${WORK}/%u/%d/%p/%n\nIdentitiesOnly yes\n"
      "Host *\nIdentityFile last%%\nIdentitiesOnly no\n");
  CHECK(files.read("h", "bob", 7).identities ==
        Words{"/home/ada/.ssh/bob@h", "/work-place/ada//home/ada/7/h", "last%"});
  CHECK(files.read("h").identities_only);
  CHECK_FALSE(files.read("g").identities_only);
}

TEST_CASE("Match") {
  const auto port = [](const char* match, const char* user = "") {
    return config(std::string("HostName real\nMatch ") + match + "\nPort 7\n").read("h", user).port;
  };
  CHECK(port("all") == 7);
  CHECK(port("host real") == 7);
  CHECK(port("host h") == 0);
  CHECK(port("originalhost h,i user ada") == 7);
  CHECK(port("user ada", "bob") == 0);
  CHECK(port("localuser ada", "bob") == 7);
  CHECK(port("exec true") == 0);
  CHECK(port("final") == 0);
}

TEST_CASE("a Match that we cannot follow is named if it says where to go") {
  const auto named = [](const std::string& text) { return config(text).read("h").passed_over; };
  CHECK(named("Match exec true\nProxyJump x\n") == "exec");
  CHECK(named("Match final all\nPort 7\n") == "final");
  CHECK(named("Match host h exec \"test -e /vpn\"\nPort 7\n") == "exec");
  CHECK(named("Match host other exec true\nPort 7\n").empty());
  CHECK(named("Match final all\nCiphers none\nHost *\nPort 7\n").empty());
  CHECK(named("Match host h\nPort 7\n").empty());
  const auto to = config("Match exec true\nPort 7\n").destination({.host = "h"});
  CHECK(to.not_admitted({}, "h").why.find("'Match exec'") != std::string::npos);
}

TEST_CASE("files that others include") {
  Files files = config("Host a\nInclude more /etc/x ~/y none\nHost *\nPort 9\nInclude config\n");
  files.content["/home/ada/.ssh/more"] = "User u\nHost nobody\nPort 1\n";
  files.content["/etc/x"] = "ConnectTimeout 3\n";
  files.content["/home/ada/y"] = "StrictHostKeyChecking ACCEPT-NEW\n";
  files.content["/etc/ssh/ssh_config"] =
      "Host *\nPort 10\nAddressFamily inet\nHashKnownHosts yes\n";
  const auto read = files.read("a");
  CHECK(read.user == "u");
  CHECK(read.port == 9);
  CHECK(read.connect_timeout_s == 3);
  CHECK(read.strict_host_key_checking == "accept-new");
  CHECK(read.hash_known_hosts);
  CHECK(read.address_family == "inet");
  CHECK(files.read("b").user.empty());
  files.content["/home/ada/.ssh/more"] = "Match final all\n";
  CHECK(files.read("a").port == 9);
}

TEST_CASE("any text is read") {
  rc::prop("any lines", [](const std::string& text) {
    (void)config(text).read("h");
    (void)config("Host " + text + "\nMatch " + text + "\nProxyCommand " + text).read("h");
  });
}

TEST_CASE("an option counts more than the configuration") {
  const auto files = config("User u\nPort 9\nIdentityFile /c\n");
  const auto bare = files.destination({.host = "h"});
  CHECK((bare.user == "u" && bare.port == 9));
  const auto told = files.destination({.host = "h", .user = "x", .port = 1, .identities = {"/i"}});
  CHECK((told.user == "x" && told.port == 1));
  CHECK(told.credentials.files == Words{"/i", "/c"});
  CHECK(config("").destination({.host = "h"}).credentials.files.size() == 5);
}

TEST_CASE("for how long to try is for the configuration to say, as no option does") {
  using namespace std::chrono_literals;
  const Target target{.host = "h", .connect_timeout = 5s};
  CHECK(config("").destination(target).connect_timeout == 5s);
  CHECK(config("ConnectTimeout 3").destination(target).connect_timeout == 3s);
  CHECK(config("ConnectTimeout 20").destination(target).connect_timeout == 20s);
}

TEST_CASE("host keys are always checked") {
  const auto policy = [](const std::string& said, HostKeyPolicy told = HostKeyPolicy::from_config) {
    return config("StrictHostKeyChecking " + said)
        .destination({.host = "h", .policy = told})
        .policy;
  };
  for (const char* said : {"yes", "ask", "off", "", "nonsense"})
    CHECK(policy(said) == HostKeyPolicy::strict);
  CHECK(policy("accept-new") == HostKeyPolicy::accept_new);
  CHECK(policy("accept-new", HostKeyPolicy::strict) == HostKeyPolicy::strict);
  CHECK(policy("yes", HostKeyPolicy::accept_new) == HostKeyPolicy::accept_new);
}

TEST_CASE("a file that keeps nothing is not what to keep a key in") {
  for (const char* file : {"/dev/null", "none"}) {
    const auto to = config(std::string("UserKnownHostsFile ") + file).destination({.host = "h"});
    const auto answer = to.stranger(Acquaintance::unknown, {}, "h");
    CHECK(answer.fix == "ssh-keyscan -H h >> ~/.ssh/known_hosts");
    CHECK(answer.why.find("UserKnownHostsFile") != std::string::npos);
  }
}

TEST_CASE("under which names a key is kept") {
  CHECK(config("").destination({.host = "H1"}).known_names() == Words{"h1"});
  CHECK(config("Port 7").destination({.host = "h1"}).known_names() == Words{"[h1]:7", "h1"});
  CHECK(config("Port 7\nHostKeyAlias x").destination({.host = "h1"}).known_names() == Words{"x"});
}

TEST_CASE("a connection that breaks is not a key that is refused") {
  const auto kind = [](const LoginAttempt& attempt) {
    return config("").destination({.host = "h"}).not_admitted(attempt, "h").kind;
  };
  LoginAttempt attempt;
  attempt.tried = {"a key"};
  CHECK(kind(attempt) == agent::Barrier::refused);
  attempt.failure = "no answer came in time";
  CHECK(kind(attempt) == agent::Barrier::unreachable);
  attempt.dismissed = true;
  CHECK(kind(attempt) == agent::Barrier::refused);
}

TEST_CASE("jumps become a pipe to the host before") {
  const auto command = [](const std::string& text, const char* host = "h") {
    return config(text).destination({.host = host}).proxy_command("/self");
  };
  const Words tail{"--forward-to", "[h]:22", "--", "b"};
  CHECK(command("").empty());
  CHECK(command("ProxyJump none\nProxyCommand x").empty());
  CHECK(command("ProxyCommand x %h") == Words{"/bin/sh", "-c", "exec x h"});
  Words one{"/self", "--ssh-pipe", "--user", "u", "--port", "7", "--host-key-policy", "strict"};
  one.insert(one.end(), tail.begin(), tail.end());
  CHECK(command("ProxyJump ssh://u@b:7\nProxyCommand x") == one);
  CHECK(command("ProxyJump [fd77::1]:7").back() == "fd77::1");
  CHECK(command("ProxyJump fd77::1").back() == "fd77::1");
  const auto two = command("ProxyJump a@x:1,b");
  CHECK(two.back() == "b");
  CHECK(std::find(two.begin(), two.end(), "a@x:1") != two.end());
  CHECK(command("ProxyJump b", "b").empty());
}

}  // namespace corro::launcher
