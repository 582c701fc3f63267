#include "cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>

#include "tests/unit/cli/words.h"

namespace corro::cli {

namespace {

// What was understood, as one line: options by their canonical names, unknown words, the command.
std::string reading_of(std::string_view line) {
  const auto read = read_arguments(words(line));
  if (!read) {
    CHECK(read.error().code() == Errc::invalid_input);
    return "error: " + read.error().text();
  }
  std::string out;
  for (const Given& given : read->options)
    out += fmt::format("{}{}{} ", given.option->name(), given.values.empty() ? "" : "=",
                       fmt::join(given.values, "+"));
  for (const std::string& word : read->unknown) out += fmt::format("?{} ", word);
  return out + fmt::format("| {}", fmt::join(read->command, " "));
}

}  // namespace

TEST_CASE("a command line is read as argparse reads it") {
  const auto [line, reading] = GENERATE(table<std::string, std::string>({
      {"", "| "},
      {"train", "| train"},
      {"-np 2 train", "--num-proc=2 | train"},
      {"-np=2 train", "--num-proc=2 | train"},
      {"--num-proc 2 train", "--num-proc=2 | train"},
      {"--num-proc=2 train", "--num-proc=2 | train"},
      {"-np 2 -np 3 x", "--num-proc=2 --num-proc=3 | x"},
      // From the first word that is no option on, all is the command's.
      {"-np 2 python x.py -np 3 --verbose -- -h",
       "--num-proc=2 | python x.py -np 3 --verbose -- -h"},
      {"-np 2 -- python", "--num-proc=2 | -- python"},
      {"- -np 2", "| - -np 2"},
      {"-np 2 '' -h", "--num-proc=2 |  -h"},
      {"-np 2 -x~b -h", "--num-proc=2 | -x b -h"},
      {"-np 2 -a~b -h", "--num-proc=2 | -a b -h"},  // a blank makes it no option
      {"-np 2 train --net x --wat", "--num-proc=2 | train --net x --wat"},
      // Abbreviations.
      {"--num-p 2 train", "--num-proc=2 | train"},
      {"--num-p=2 train", "--num-proc=2 | train"},
      {"--timeline-f X y", "--timeline-filename=X | y"},
      {"--slots 4 y", "--slots-per-host=4 | y"},
      {"-n 2 x", "--num-proc=2 | x"},
      {"-c x", "--check-build | x"},
      {"--verb x", "--verbose | x"},
      // What we add does not make Horovod's abbreviations ambiguous.
      {"--co f x", "--config-file=f | x"},
      {"--st 3 x",
       "error: ambiguous option: --st could match --start-timeout, --stall-check, "
       "--stall-check-warning-time-seconds, --stall-check-shutdown-time-seconds"},
      {"--col never x", "--color=never | x"},
      {"--js x", "--jsrun | x"},
      {"--json x", "--json | x"},
      {"--bi a x", "--binding-args=a | x"},
      {"--bind-t core x", "--bind-to=core | x"},
      // Values.
      {"-Ha:1 x", "--hosts=a:1 | x"},
      {"-H=a:1 x", "--hosts=a:1 | x"},
      {"--hosts=a=b x", "--hosts=a=b | x"},
      {"--hosts= x", "--hosts= | x"},
      {"-H '' x", "--hosts= | x"},
      {"-i-x y", "--ssh-identity-file=-x | y"},
      {"-p22 y", "--ssh-port=22 | y"},
      {"--cycle-time-ms .5 x", "--cycle-time-ms=.5 | x"},
      {"--mpi-args=-x~A x", "--mpi-args=-x A | x"},
      {"--mpi-args -x~A x", "--mpi-args=-x A | x"},
      {"--blacklist-cooldown-range 1 3 x", "--blacklist-cooldown-range=1+3 | x"},
      {"--network-interfaces a,b --network-interface c x",
       "--network-interfaces=a,b --network-interface=c | x"},
      {"-x A -x B=C x", "--export=A --export=B=C | x"},
      {"-np ~2~ x", "--num-proc= 2  | x"},
      {"-np +1_0 x", "--num-proc=+1_0 | x"},
      // What looks like an option and is none of ours is passed over here.
      {"--wat x", "?--wat | x"},
      {"--wat=3 --no x",
       "error: ambiguous option: --no could match --no-hierarchical-allreduce, "
       "--no-hierarchical-allgather, --no-torus-allreduce, --no-autotune, "
       "--no-timeline-mark-cycles, --no-stall-check, --no-mpi-threads-disable, "
       "--no-log-hide-timestamp"},
      {"-np2 x", "?-np2 | x"},
      {"-z --wat -np 1 x", "--num-proc=1 ?-z ?--wat | x"},
      {"--num-procs 2 x", "?--num-procs | 2 x"},
      {"-5 x", "| -5 x"},
      // Help and version end it.
      {"-h --wat -np x", "--help | "},
      {"--wat -v", "--version ?--wat | "},
      {"-hv x", "--help | "},
      {"-np 2 -cb=h x", "--num-proc=2 --check-build --help | "},
  }));
  CAPTURE(line);
  CHECK(reading_of(line) == reading);
}

TEST_CASE("what argparse refuses is refused in its words") {
  const auto [line, text] = GENERATE(table<std::string, std::string>({
      {"--net x", "ambiguous option: --net could match --network-interfaces, --network-interface"},
      {"--net=1 x",
       "ambiguous option: --net=1 could match --network-interfaces, --network-interface"},
      {"-pre x", "ambiguous option: -pre could match -p, -prefix-timestamp"},
      {"-host x", "ambiguous option: -host could match -h, -hostfile"},
      {"--min 2 x", "ambiguous option: --min could match --min-np, --min-num-proc"},
      // All words are looked at before any is acted on.
      {"-np x --net",
       "ambiguous option: --net could match --network-interfaces, --network-interface"},
      {"-np 2x y", "argument -np/--num-proc: invalid int value: '2x'"},
      {"-np --net",
       "ambiguous option: --net could match --network-interfaces, --network-interface"},
      {"-np", "argument -np/--num-proc: expected one argument"},
      {"-np --verbose", "argument -np/--num-proc: expected one argument"},
      {"-np -- 2", "argument -np/--num-proc: expected one argument"},
      {"--mpi-args -x", "argument --mpi-args: expected one argument"},
      {"--blacklist-cooldown-range 1", "argument --blacklist-cooldown-range: expected 2 arguments"},
      {"--blacklist-cooldown-range=1 2 x",
       "argument --blacklist-cooldown-range: expected 2 arguments"},
      {"-np x y", "argument -np/--num-proc: invalid int value: 'x'"},
      {"-np '' y", "argument -np/--num-proc: invalid int value: ''"},
      {"-np 2.0 y", "argument -np/--num-proc: invalid int value: '2.0'"},
      {"-np 1__0 y", "argument -np/--num-proc: invalid int value: '1__0'"},
      {"-np it's y", "argument -np/--num-proc: invalid int value: \"it's\""},
      {"--cycle-time-ms x y", "argument --cycle-time-ms: invalid float value: 'x'"},
      {"--log-level info x",
       "argument --log-level: invalid choice: 'info' (choose from 'TRACE', 'DEBUG', 'INFO', "
       "'WARNING', 'ERROR', 'FATAL')"},
      {"--verbose=1 x", "argument --verbose: ignored explicit argument '1'"},
      {"--help= x", "argument -h/--help: ignored explicit argument ''"},
      {"-h= x", "argument -h/--help: ignored explicit argument ''"},
      {"-hz x", "argument -h/--help: ignored explicit argument 'z'"},
      {"--gloo --mpi x", "argument --mpi: not allowed with argument --gloo"},
      {"-H a:1 -hostfile f x",
       "argument -hostfile/--hostfile: not allowed with argument -H/--hosts"},
      {"-hostfile f --host-discovery-script s x",
       "argument --host-discovery-script: not allowed with argument -hostfile/--hostfile"},
      {"--log-without-timestamp -prefix-timestamp x",
       "argument -prefix-timestamp/--prefix-output-with-timestamp: not allowed with argument "
       "--log-without-timestamp"},
      {"--autotune --no-autotune x",
       "argument --no-autotune: not allowed with argument --autotune"},
  }));
  CAPTURE(line);
  CHECK(reading_of(line) == "error: " + text);
}

TEST_CASE("what is out of range is refused in the same way") {
  const auto [line, text] = GENERATE(table<std::string, std::string>({
      {"-np 0 x", "argument -np/--num-proc: must be from 1 to 1048576, not 0"},
      {"-np -1 x", "argument -np/--num-proc: must be from 1 to 1048576, not -1"},
      {"-np 1048577 x", "argument -np/--num-proc: must be from 1 to 1048576, not 1048577"},
      {"--fusion-threshold-mb -1 x",
       "argument --fusion-threshold-mb: must be from 0 to 1048576, not -1"},
      {"--cycle-time-ms -0.5 x",
       "argument --cycle-time-ms: must be from 0 to 2147483647, not -0.5"},
      {"--cycle-time-ms nan x", "argument --cycle-time-ms: must be from 0 to 2147483647, not nan"},
      {"--autotune-gaussian-process-noise 1.1 x",
       "argument --autotune-gaussian-process-noise: must be from 0 to 1, not 1.1"},
      {"--blacklist-cooldown-range 0 9 x",
       "argument --blacklist-cooldown-range: must be from 1 to 3600, not 0"},
      {"--grace inf x", "argument --grace: must be from 0 to 86400, not inf"},
      {"-np 99999999999999999999 x",
       "argument -np/--num-proc: must be from 1 to 1048576, not 99999999999999999999"},
      {"--cache-capacity -99999999999999999999 x",
       "argument --cache-capacity: must be from 0 to 2147483647, not -99999999999999999999"},
      {"--cycle-time-ms inf x", "argument --cycle-time-ms: must be from 0 to 2147483647, not inf"},
      {"--thread-affinity 1,x y", "argument --thread-affinity: expected cores as 0,2,4, not '1,x'"},
      {"--thread-affinity -1 y", "argument --thread-affinity: expected cores as 0,2,4, not '-1'"},
      {"--network-interface '' y",
       "argument --network-interface: expected names as eth0,eth1, not ''"},
      {"-p 0 x", "argument -p/--ssh-port: must be from 1 to 65535, not 0"},
  }));
  CHECK(reading_of(line) == "error: " + text);
}

TEST_CASE("where a line stands that is being typed") {
  const auto standing = [](std::string_view line) {
    const auto [option, command] = standing_after(words(line));
    return command ? fmt::format("command at {}", *command)
                   : std::string(option ? option->name() : "option");
  };
  CHECK(standing("") == "option");
  CHECK(standing("-np") == "--num-proc");
  CHECK(standing("-np 2") == "option");
  CHECK(standing("-np 2 --hosts=a:1 -H") == "--hosts");
  CHECK(standing("--blacklist-cooldown-range 1") == "--blacklist-cooldown-range");
  CHECK(standing("-np 2 python -np") == "command at 2");
  CHECK(standing("--net --wat --verb") == "option");
}

}  // namespace corro::cli
