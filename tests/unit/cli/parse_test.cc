#include "cli/parse.h"

#include <catch2/catch.hpp>

#include "base/text.h"
#include "cli/options.h"

namespace kolo {

using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

// Words are set apart by blanks; '' is an empty one.
Words words(std::string_view line) {
  Words out;
  for (const auto word : split(line, ' ')) out.emplace_back(word == "''" ? "" : word);
  return line.empty() ? Words{} : out;
}

std::string complaint_about(std::string_view line) {
  const auto request = parse_command_line(words(line));
  if (request) return "none";
  CHECK(request.error().code() == Errc::invalid_input);
  return request.error().text();
}

RunJob job(std::string_view line) {
  const auto request = parse_command_line(words(line));
  REQUIRE(request);
  REQUIRE(std::holds_alternative<RunJob>(*request));
  return std::get<RunJob>(*request);
}

template <class Kind>
bool is(std::string_view line) {
  const auto request = parse_command_line(words(line));
  return request && std::holds_alternative<Kind>(*request);
}

}  // namespace

TEST_CASE("a command line is cut where argparse cuts it") {
  struct Case {
    std::string line;
    Words options, command;
  };
  const auto c = GENERATE(values<Case>({
      {"", {}, {}},
      {"train", {}, {"train"}},
      {"-np 2 train", {"--num-proc=2"}, {"train"}},
      {"-np=2 train", {"--num-proc=2"}, {"train"}},
      {"--num-proc 2 train", {"--num-proc=2"}, {"train"}},
      {"--num-proc=2 train", {"--num-proc=2"}, {"train"}},
      {"--num 2 train", {"--num-proc=2"}, {"train"}},
      {"--num=2 train", {"--num-proc=2"}, {"train"}},
      {"-H a:1,b:2 x", {"--hosts=a:1,b:2"}, {"x"}},
      {"--hosts=a=b x", {"--hosts=a=b"}, {"x"}},
      {"--hos a:1 x", {"--hosts=a:1"}, {"x"}},
      {"--verb train", {"--verbose"}, {"train"}},
      {"-h", {"--help"}, {}},
      {"-v", {"--version"}, {}},
      {"-np 2 -np 3 x", {"--num-proc=2", "--num-proc=3"}, {"x"}},
      // From the first word that is no option on, all is the command's.
      {"-np 2 python x.py -np 3 --verbose -- -h",
       {"--num-proc=2"},
       {"python", "x.py", "-np", "3", "--verbose", "--", "-h"}},
      {"- -np 2", {}, {"-", "-np", "2"}},
      {"-np 2 '' -h", {"--num-proc=2"}, {"", "-h"}},
  }));
  CAPTURE(c.line);
  const auto parts = cut(words(c.line));
  REQUIRE(parts);
  CHECK(parts->options == c.options);
  CHECK(parts->command == c.command);
}

TEST_CASE("what argparse refuses is refused in its words") {
  const auto [line, text] = GENERATE(table<std::string, std::string>({
      {"--wat x", "unrecognized arguments: --wat"},
      {"--wat=3 x", "unrecognized arguments: --wat=3"},
      {"-np 1 -x", "unrecognized arguments: -x"},
      {"-np2 x", "unrecognized arguments: -np2"},
      {"--num-procs 2 x", "unrecognized arguments: --num-procs"},
      {"-- x", "unrecognized arguments: --"},
      {"--ver x", "ambiguous option: --ver could match --version, --verbose"},
      {"--ver=1 x", "ambiguous option: --ver=1 could match --version, --verbose"},
      {"--h x", "ambiguous option: --h could match --help, --hosts"},
      {"-np", "argument -np/--num-proc: expected one argument"},
      {"-np --verbose", "argument -np/--num-proc: expected one argument"},
      {"-np '' x", "argument -np/--num-proc: expected one argument"},
      {"-H '' -np 1 x", "argument -H/--hosts: expected one argument"},
      {"--hosts= -np 1 x", "argument -H/--hosts: expected one argument"},
      {"--grace", "argument --grace: expected one argument"},
      {"--verbose=1 x", "argument --verbose: ignored explicit argument '1'"},
      {"--help= x", "argument -h/--help: ignored explicit argument ''"},
  }));
  CAPTURE(line);
  CHECK(complaint_about(line) == text);
}

TEST_CASE("what cannot be meant is said before anything starts") {
  const auto [line, text] = GENERATE(table<std::string, std::string>({
      {"", "the following arguments are required: -np/--num-proc"},
      {"train", "the following arguments are required: -np/--num-proc"},
      {"-np x train", "argument -np/--num-proc: invalid int value: 'x'"},
      {"-np 2x train", "argument -np/--num-proc: invalid int value: '2x'"},
      {"-np 2.0 train", "argument -np/--num-proc: invalid int value: '2.0'"},
      {"-np 99999999999999999999 train",
       "argument -np/--num-proc: invalid int value: '99999999999999999999'"},
      {"-np 0 train", "argument -np/--num-proc: must be from 1 to 1048576, not 0"},
      {"-np=-1 train", "argument -np/--num-proc: must be from 1 to 1048576, not -1"},
      {"-np 1048577 train", "argument -np/--num-proc: must be from 1 to 1048576, not 1048577"},
      {"-np 2", "no command to run was given"},
      {"-np 2 -H a train", "argument -H/--hosts: 'a': expected host:slots"},
      {"-np 2 -H a:0 train",
       "argument -H/--hosts: 'a:0': slots must be a number from 1 to 1048576"},
      {"-np 2 -H a:1,, train", "argument -H/--hosts: '': expected host:slots"},
      {"-np 2 --grace x train", "argument --grace: invalid number of seconds: 'x'"},
      {"-np 2 --grace=-1 train", "argument --grace: invalid number of seconds: '-1'"},
      {"-np 2 --grace nan train", "argument --grace: invalid number of seconds: 'nan'"},
      {"-np 2 --grace 5s train", "argument --grace: invalid number of seconds: '5s'"},
      {"-np 2 --grace inf train", "argument --grace: inf s is longer than a day"},
      {"-np 2 --grace 86401 train", "argument --grace: 86401 s is longer than a day"},
  }));
  CAPTURE(line);
  CHECK(complaint_about(line) == text);
}

TEST_CASE("a job is what was asked for") {
  const RunJob run = job("-np 3 -H a:2,b:2,a:1 --grace 1.5 --verbose python train.py -v");
  CHECK(run.verbose);
  CHECK(run.spec.np == 3);
  CHECK(run.spec.hosts == std::vector<HostSpec>{{"a", 3}, {"b", 2}});
  CHECK(run.spec.command == Words{"python", "train.py", "-v"});
  CHECK(run.spec.grace == 1500ms);
}

TEST_CASE("what is not said has its default") {
  const RunJob run = job("-np 4 train");
  CHECK_FALSE(run.verbose);
  CHECK(run.spec.hosts == std::vector<HostSpec>{{"localhost", 4}});
  CHECK(run.spec.grace == 5s);
}

TEST_CASE("of an option that is given twice the last counts") {
  CHECK(job("-np 4 -np 2 --grace 1 --grace 0 -H a:9 -H b:9 train").spec.np == 2);
  CHECK(job("-np 4 --grace 1 --grace 0 train").spec.grace == 0s);
  CHECK(job("-np 4 -H a:9 -H b:9 train").spec.hosts == std::vector<HostSpec>{{"b", 9}});
}

TEST_CASE("values reach us as they were written") {
  CHECK(complaint_about("-np 1 -H [a:1] x") ==
        "argument -H/--hosts: '[a:1]': '[a' is not a host name");
  CHECK(complaint_about("-np 1 -H {} x") == "argument -H/--hosts: '{}': expected host:slots");
  CHECK(complaint_about("-np 1 --hosts=--help x") ==
        "argument -H/--hosts: '--help': expected host:slots");
  CHECK(complaint_about("-np 1 -H \"a:1\" x") ==
        "argument -H/--hosts: '\"a:1\"': '\"a' is not a host name");
}

TEST_CASE("help and version come before what else is there or missing") {
  CHECK(is<ShowHelp>("-h"));
  CHECK(is<ShowHelp>("-np x --help"));
  CHECK(is<ShowVersion>("--version"));
  CHECK(is<ShowVersion>("-v -np 2 train"));
  CHECK(is<RunJob>("-np 2 train -h -v"));
}

TEST_CASE("the guard is no option that users could meet") {
  CHECK(complaint_about("--guard -np 1 x") == "unrecognized arguments: --guard");
  CHECK(help_text().find("guard") == std::string::npos);
}

}  // namespace kolo
