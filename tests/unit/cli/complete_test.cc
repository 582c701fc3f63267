#include "cli/complete.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "cli/options.h"
#include "tests/unit/cli/around.h"
#include "tests/unit/cli/words.h"

namespace corro::cli {

namespace {

using Then = Completion::Then;

const Around kAround{.variables = {{"HOME", "/home/ada"}},
                     .files = {{"hosts.txt", "n1 slots=2\nn2:4\nrack[1-2]:8\n"},
                               {"/home/ada/hosts", "home1 slots=1\n"},
                               {"six.txt", "[2001:db8::1] slots=2\n"},
                               {"broken.txt", "n1 slots=many\n"},
                               {"/home/ada/.ssh/config",
                                "# Host commented\n"
                                "Host login gpu1\n"
                                "  HostName gpu1.example  # Host inside\n"
                                "HOST=\"gpu2\" gpu? *.example !login  # gpu9\n"
                                "Host gpu1\n"
                                "Include more /etc/shared ~/.ssh/missing\n"},
                               {"/home/ada/.ssh/more", "Include config\nHost inner\n"},
                               {"/etc/shared", "host shared\n"}}};

Completion after(std::string_view line) {
  return complete(words(line), kAround);
}

Words texts(const Completion& completion) {
  Words out;
  for (const auto& candidate : completion.candidates) out.push_back(candidate.text);
  return out;
}

const Words kReached = {"localhost", "login", "gpu1", "gpu2", "inner", "shared"};

Words around_each(const std::string& before, const Words& names, const std::string& behind) {
  Words out;
  for (const std::string& name : names) out.push_back(before + name + behind);
  return out;
}

}  // namespace

TEST_CASE("names of options are offered where one may stand") {
  const auto [line, offered] = GENERATE(table<std::string, Words>({
      {"--time", {"--timeline-filename", "--timeline-mark-cycles"}},
      {"-h", {"-h", "-hostfile"}},
      {"-n", {"-np"}},
      {"-np 2 --verbo", {"--verbose"}},
      {"-np=2 -H a:2 --verbose --verbo", {"--verbose"}},
      {"--blacklist-cooldown-range 1 2 --verbo", {"--verbose"}},
      {"--no-log-hide", {}},
      {"--wat", {}},
  }));
  CAPTURE(line);
  CHECK(texts(after(line)) == offered);
  CHECK(after(line).then == Then::nothing);
}

TEST_CASE("all names that are shown are offered with their help, and no hidden ones") {
  const auto offered = after("-").candidates;
  std::size_t shown = 0;
  for (const Option& option : options())
    for (const auto name : names_of(option)) {
      CAPTURE(name);
      const Completion::Candidate candidate{std::string(name), std::string(option.help)};
      CHECK((std::count(offered.begin(), offered.end(), candidate) == 1) == !option.hidden);
      shown += !option.hidden;
    }
  CHECK(offered.size() == shown);
}

TEST_CASE("a value is what its option takes") {
  const auto [line, offered] = GENERATE(table<std::string, Words>({
      {"--log-level W", {"WARNING"}},
      {"--log-level=W", {"--log-level=WARNING"}},
      {"--log-lev=W", {"--log-lev=WARNING"}},
      {"--log-lev W", {"WARNING"}},
      {"--color ''", {"auto", "always", "never"}},
      {"--color w", {}},
      {"-np ''", {}},
      {"-np -", {}},
      {"--verbose=", {}},
      {"--wat=x", {}},
      {"--blacklist-cooldown-range 1 ''", {}},
      {"--blacklist-cooldown-range=", {}},
  }));
  CAPTURE(line);
  CHECK(texts(after(line)) == offered);
  CHECK(after(line).then == Then::nothing);
}

TEST_CASE("files, folders and programs are left to the shell, with what stands before them") {
  const auto [line, then, prefix] = GENERATE(table<std::string, Then, std::string>({
      {"--config-file x", Then::files, ""},
      {"--config-file=x", Then::files, "--config-file="},
      {"-i x", Then::files, ""},
      {"-ix", Then::files, "-i"},
      {"-hostfile=x", Then::files, "-hostfile="},
      {"--output-filename ''", Then::folders, ""},
      {"--output-filename=", Then::folders, "--output-filename="},
      {"--host-discovery-script ''", Then::programs, ""},
      {"-H @x", Then::files, "@"},
      {"-H a:2,@x", Then::files, "a:2,@"},
      {"--hosts=a:2,@x", Then::files, "--hosts=a:2,@"},
      {"-np 2 py", Then::programs, ""},
      {"--verbose ''", Then::programs, ""},
  }));
  CAPTURE(line);
  CHECK(after(line).then == then);
  CHECK(after(line).prefix == prefix);
  CHECK(texts(after(line)).empty());
}

TEST_CASE("hosts are those of ssh's configuration, each once, and what it includes") {
  const auto [line, offered] = GENERATE(table<std::string, Words>({
      {"-H ''", around_each("", kReached, ":")},
      {"-H a:2,", around_each("a:2,", kReached, ":")},
      {"--hosts=", around_each("--hosts=", kReached, ":")},
      {"-H gpu", {"gpu1:", "gpu2:"}},
      {"-Hgpu", {"-Hgpu1:", "-Hgpu2:"}},
      {"-H me@lo", {"me@localhost:", "me@login:"}},
      {"-H gpu1:", {}},
      {"--exclude ''", kReached},
      {"-hostfile missing.txt --exclude lo", {"localhost", "login"}},
      {"-hostfile broken.txt --exclude lo", {"localhost", "login"}},
  }));
  CAPTURE(line);
  CHECK(texts(after(line)) == offered);
  CHECK(after(line).goes_on);
}

TEST_CASE("hosts to choose from are those that the line names") {
  const auto [line, offered] = GENERATE(table<std::string, Words>({
      {"-hostfile hosts.txt --exclude ''", {"n1", "n2", "rack1", "rack2"}},
      {"--hostfile=hosts.txt --include=n", {"--include=n1", "--include=n2"}},
      {"-hostfile six.txt --exclude [", {"[2001:db8::1]"}},
      {"-hostfile hosts.txt --exclude n1@n", {"n1@n1", "n1@n2"}},
      {"-hostfile hosts.txt --exclude n1:0,1@ra", {"n1:0,1@rack1", "n1:0,1@rack2"}},
      {"-H w1:2,w2:2 --exclude ''", {"w1", "w2"}},
      {"--hosts=w1,@hosts.txt --exclude ''", {"w1", "n1", "n2", "rack1", "rack2"}},
  }));
  CAPTURE(line);
  CHECK(texts(after(line)) == offered);
}

TEST_CASE("a host file below the home is found, though no shell has looked at the word yet") {
  CHECK(texts(complete({"-hostfile", "~/hosts", "--exclude", ""}, kAround)) == Words{"home1"});
}

TEST_CASE("what follows the user's program is not ours to complete") {
  const auto [line, command] = GENERATE(table<std::string, std::size_t>({
      {"python ''", 0},
      {"-np 2 python --time", 2},
      {"-np=2 -H a:2 python -H ''", 3},
      {"--verbose hosts --format ''", 1},
  }));
  CAPTURE(line);
  const auto found = after(line);
  CHECK(found.then == Then::command);
  CHECK(found.command == command);
  CHECK(found.candidates.empty());
}

TEST_CASE("a subcommand is the first word, if any") {
  CHECK(texts(after("")) == Words{"hosts", "doctor"});
  CHECK(texts(after("ho")) == Words{"hosts"});
  CHECK(after("ho").then == Then::programs);
  CHECK(texts(after("--verbose ho")).empty());
}

TEST_CASE("a subcommand has words of its own") {
  const auto [line, offered] = GENERATE(table<std::string, Words>({
      {"hosts -", {"--help", "--format"}},
      {"hosts --format ''", {"horovod", "openmpi", "slurm", "json"}},
      {"hosts --format=s", {"--format=slurm"}},
      {"hosts a:2,gpu", {"a:2,gpu1:", "a:2,gpu2:"}},
      {"hosts --time", {}},
  }));
  CAPTURE(line);
  CHECK(texts(after(line)) == offered);
}

TEST_CASE("the doctor has the words of a job") {
  CHECK(texts(after("do")) == Words{"doctor"});
  CHECK(texts(after("doctor --exclude-b")) == Words{"--exclude-bad"});
  CHECK(texts(after("doctor -H gpu")) == Words{"gpu1:", "gpu2:"});
  CHECK(after("doctor ''").then == Then::programs);
  CHECK(texts(after("doctor ''")).empty());
  const auto command = after("doctor -H a:2 python ''");
  CHECK(command.then == Then::command);
  CHECK(command.command == 3);
}

TEST_CASE("the answer for the shells is a line about it and a line for each candidate") {
  CHECK(print_completion(after("-H gpu")) == "nothing 0 nospace \ngpu1:\t\ngpu2:\t\n");
  CHECK(print_completion(after("--verbo")) ==
        "nothing 0 space \n--verbose\tsay what is going on\n");
  CHECK(print_completion(after("-np 2 ls ''")) == "command 2 space \n");
  CHECK(print_completion(after("--hosts=a:2,@x")) == "files 0 space --hosts=a:2,@\n");
}

}  // namespace corro::cli
