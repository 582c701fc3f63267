#include "cli/parse.h"

#include <catch2/catch.hpp>

#include "tests/unit/cli/around.h"
#include "tests/unit/cli/words.h"

namespace corro::cli {

using launcher::HostSpec;

using namespace std::chrono_literals;

namespace {

std::string complaint_in(std::string_view line, const Around& around = {}) {
  const auto request = parse_command_line(words(line), around);
  return request ? "none" : request.error().text();
}

RunJob job(std::string_view line, const Around& around = {}) {
  const auto request = parse_command_line(words(line), around);
  if (!request) FAIL(request.error().text());
  REQUIRE(std::holds_alternative<RunJob>(*request));
  return std::get<RunJob>(*request);
}

template <class Kind>
bool is(std::string_view line, const Around& around = {}) {
  const auto request = parse_command_line(words(line), around);
  return request && std::holds_alternative<Kind>(*request);
}

const Around kSlurm{.variables = {{"SLURM_JOB_ID", "42"},
                                  {"SLURM_JOB_NODELIST", "node[1-2]"},
                                  {"SLURM_NTASKS", "8"},
                                  {"SLURM_TASKS_PER_NODE", "4(x2)"}}};

}  // namespace

TEST_CASE("what is missing or unknown is said in argparse's words, and in its order") {
  const auto [line, text] = GENERATE(table<std::string, std::string>({
      {"", "the following arguments are required: -np/--num-proc"},
      {"train", "the following arguments are required: -np/--num-proc"},
      {"-H a:2 train", "the following arguments are required: -np/--num-proc"},
      {"-np2 train", "the following arguments are required: -np/--num-proc"},
      {"--wat train", "the following arguments are required: -np/--num-proc"},
      {"--wat -np 1 --no-such=1 train", "unrecognized arguments: --wat --no-such=1"},
      {"-cb --wat", "unrecognized arguments: --wat"},
      {"--guard -np 1 x", "unrecognized arguments: --guard"},
      {"-np 2", "no command to run was given"},
      {"-np 2 --json x", "argument --json: goes with --dry-run, or with the doctor"},
      {"-np 2 --include a x", "argument --include: there are no hosts to choose from"},
      {"-np 2 -H a:0 x", "argument -H/--hosts: no host has slots"},
      {"-np 2 -H a:-1 x",
       "argument -H/--hosts: slots must be a number from 0 to 1048576\n  a:-1\n    ^~"},
      {"-np 2 -hostfile none x",
       "argument -hostfile/--hostfile: reading none: No such file or directory"},
      {"-np 2 --config-file none x",
       "argument --config-file: reading none: No such file or directory"},
  }));
  CAPTURE(line);
  CHECK(complaint_in(line) == text);
}

TEST_CASE("a job is what was asked for") {
  const RunJob run = job("-np 3 -H a:2,b:2,a:1 --grace 1.5 --verbose python train.py -v");
  CHECK(run.spec.verbose);
  CHECK_FALSE(run.dry_run);
  CHECK(run.notes.empty());
  CHECK(run.spec.np == 3);
  CHECK(run.spec.hosts == std::vector<HostSpec>{{"a", 3}, {"b", 2}});
  CHECK(run.spec.command == Words{"python", "train.py", "-v"});
  CHECK(run.spec.grace == 1500ms);
}

TEST_CASE("what is not said has its default") {
  const RunJob run = job("-np 4 train");
  CHECK_FALSE(run.spec.verbose);
  CHECK(run.spec.hosts == std::vector<HostSpec>{{"localhost", 4}});
  CHECK(run.spec.grace == 5s);
  CHECK(run.spec.start_timeout == 30s);
  CHECK(run.spec.exit_code_policy == launcher::ExitCodePolicy::first);
  CHECK(run.spec.output == launcher::OutputStyle{});
  CHECK(run.spec.stdin_to == launcher::StdinTo{});
  CHECK(run.spec.placement == launcher::Placement{});
  CHECK(run.spec.environment == launcher::WorkerEnvironment{});
}

TEST_CASE("of an option that is given twice the last counts") {
  CHECK(job("-np 4 -np 2 train").spec.np == 2);
  CHECK(job("-np 4 --grace 1 --grace 0 train").spec.grace == 0s);
  CHECK(job("-np 4 -H a:9 -H b:9 train").spec.hosts == std::vector<HostSpec>{{"b", 9}});
}

TEST_CASE("hosts come from wherever they are named") {
  const Around around{
      .files = {{"hosts", "a slots=2\nb\n"}, {"open", "c slots=1 max_slots=4\n"}},
      .scripts = {{"./discover", "a:2\nb\n"}, {"./nothing", "\n"}},
  };
  using Hosts = std::vector<HostSpec>;
  CHECK(job("-np 2 -hostfile hosts x", around).spec.hosts == Hosts{{"a", 2}, {"b", 1}});
  CHECK(job("-np 2 -H d:3,@open x", around).spec.hosts == Hosts{{"d", 3}, {"c", 1}});
  CHECK(job("-np 2 -hostfile hosts --slots 4 x", around).spec.hosts == Hosts{{"a", 2}, {"b", 4}});
  CHECK(job("-np 2 -hostfile hosts --exclude a:0 x", around).spec.hosts ==
        Hosts{{.name = "a", .slots = 1, .chosen = {1}}, {"b", 1}});
  CHECK(job("-np 2 -hostfile hosts --include b x", around).spec.hosts == Hosts{{"b", 1}});
  CHECK(complaint_in("-np 2 --host-discovery-script ./nothing x", around) ==
        "what ./nothing prints: no host is named");

  const RunJob found = job("-np 2 --host-discovery-script ./discover x", around);
  CHECK(found.spec.hosts == Hosts{{"a", 2}, {"b", 1}});
  CHECK(found.notes == Words{"elastic training is not available yet: the hosts stay as "
                             "--host-discovery-script names them now",
                             "a slot for each GPU, else one: b:1"});
}

TEST_CASE("a scheduler's hosts are used when nobody names others, and said") {
  const RunJob run = job("train", kSlurm);
  CHECK(run.spec.np == 8);
  CHECK(run.spec.hosts == std::vector<HostSpec>{{"node1", 4}, {"node2", 4}});
  REQUIRE(run.notes.size() == 1);
  CHECK(run.notes.front() == "hosts from Slurm job 42 (SLURM_JOB_NODELIST): node[1-2], 8 slots");
  CHECK(job("-np 3 train", kSlurm).spec.np == 3);
  CHECK(job("-np 3 -H a:3 train", kSlurm).spec.hosts == std::vector<HostSpec>{{"a", 3}});
  CHECK(job("--include node2 train", kSlurm).spec.np == 4);
  CHECK(job("--slots-per-host 2 train", kSlurm).spec.np == 4);

  Around nested = kSlurm;
  nested.variables["CORRO_STORE"] = "127.0.0.1:1";
  CHECK(job("-np 2 train", nested).spec.hosts == std::vector<HostSpec>{{"localhost", 2}});
  CHECK(job("-np 2 train", nested).notes.front().starts_with("inside a worker of another job"));
  CHECK(complaint_in("train", nested) == "the following arguments are required: -np/--num-proc");
}

TEST_CASE("one node has as many slots as workers are asked for") {
  const Around around{.variables = {{"SLURM_JOB_ID", "42"},
                                    {"SLURM_JOB_NODELIST", "node1"},
                                    {"SLURM_NTASKS", "1"},
                                    {"SLURM_TASKS_PER_NODE", "1"}}};
  CHECK(job("-np 4 train", around).spec.hosts == std::vector<HostSpec>{{"node1", 4}});
  CHECK(job("train", around).spec.np == 1);
}

TEST_CASE("a scheduler that cannot be understood stops only those who need it") {
  const Around around{.variables = {{"PBS_NODEFILE", "gone"}}};
  const RunJob run = job("-np 2 train", around);
  CHECK(run.spec.hosts == std::vector<HostSpec>{{"localhost", 2}});
  CHECK(run.notes.front().starts_with("the scheduler's hosts are not used: PBS"));
  CHECK(complaint_in("train", around).ends_with("\n  Name the hosts with -H or -hostfile."));
}

TEST_CASE("hosts may be left out, or chosen, by several options") {
  CHECK(job("-np 1 -H a:1,b:1,c:1 --exclude a --exclude b x").spec.hosts ==
        std::vector<HostSpec>{{"c", 1}});
  CHECK(job("-np 1 -H n[1-4]:2 --exclude n[1-3] x").spec.hosts == std::vector<HostSpec>{{"n4", 2}});
  CHECK(job("-np 1 -H a:4 --include a:1-2 x").spec.hosts ==
        std::vector<HostSpec>{{.name = "a", .slots = 2, .chosen = {1, 2}}});
  const RunJob run = job("-np 1 -H a:0,b:1,c:0 x");
  CHECK(run.spec.hosts == std::vector<HostSpec>{{"b", 1}});
  CHECK(run.notes == Words{"left out, having no slots: a and 1 more"});
}

TEST_CASE("under LSF the number of workers need not be said") {
  const Around lsf{.variables = {{"LSB_JOBID", "7"}, {"LSB_MCPU_HOSTS", "a 2 b 2"}}};
  CHECK(job("train", lsf).spec.np == 4);
  CHECK(job("-H a:3 train", lsf).spec.np == 3);
  const RunJob alone = job("train", Around{.variables = {{"LSB_JOBID", "7"}}});
  CHECK(alone.spec.hosts == std::vector<HostSpec>{{"localhost", 1}});
  CHECK(alone.notes == Words{"LSF job 7 names no hosts, so this one is used"});
}

TEST_CASE("help, version and what is built come before what else is there or missing") {
  CHECK(is<ShowHelp>("-h"));
  CHECK(is<ShowHelp>("--wat --help"));
  CHECK(is<ShowVersion>("--version"));
  CHECK(is<ShowVersion>("-v -np x train"));
  CHECK(is<CheckBuild>("-cb"));
  CHECK(is<CheckBuild>("--check-build --verbose"));
  CHECK(is<RunJob>("-np 2 train -h -v -cb"));
  CHECK(complaint_in("-np x --help") == "argument -np/--num-proc: invalid int value: 'x'");
}

TEST_CASE("a dry run is a job that is not run") {
  CHECK(job("-np 2 --dry-run x").dry_run);
  CHECK(job("-np 2 --dry-run --json x").json);
}

TEST_CASE("subcommands are the first word, and shadow no program") {
  CHECK(is<ShowHosts>("hosts a:2"));
  CHECK(is<ShowHosts>("hosts", kSlurm));
  CHECK(is<ShowHelp>("hosts --help"));
  CHECK(job("-np 1 hosts a:2").spec.command == Words{"hosts", "a:2"});
  CHECK(job("-np 1 doctor").spec.command == Words{"doctor"});
  CHECK(job("./hosts", kSlurm).spec.command == Words{"./hosts"});
  CHECK(complaint_in("hosts") == "no hosts were given, and there is no scheduler to ask");
  CHECK(is<SeeDoctor>("doctor"));
  CHECK(is<ShowHelp>("doctor --help"));

  const auto shown = parse_command_line(words("hosts a:2,b[1-2] --format slurm"), Around());
  REQUIRE(shown);
  CHECK(std::get<ShowHosts>(*shown).hosts.size() == 3);
  CHECK(std::get<ShowHosts>(*shown).format == launcher::HostFormat::slurm);
  CHECK(complaint_in("hosts a --format xml") ==
        "argument --format: invalid choice: 'xml' (choose from 'horovod', 'openmpi', 'slurm', "
        "'json')");
  CHECK(complaint_in("hosts a b") == "unrecognized arguments: b");
  CHECK(complaint_in("hosts a --wat x") == "unrecognized arguments: --wat");
  CHECK(is<ShowHosts>("hosts a --form json"));
  CHECK(complaint_in("hosts a --format") == "argument --format: expected one argument");
}

TEST_CASE("hosts are shown with where they are from, and with what a notation has no place for") {
  const auto notes = [](std::string_view line, const Around& around = {}) {
    const auto request = parse_command_line(words(line), around);
    if (!request) FAIL(request.error().text());
    return std::get<ShowHosts>(*request).notes;
  };
  CHECK(notes("hosts", kSlurm) == Words{"hosts from Slurm job 42 (SLURM_JOB_NODELIST)"});
  CHECK(notes("hosts u@a/10.0.0.1:4").empty());
  CHECK(notes("hosts u@a:4 --format openmpi").empty());
  CHECK(notes("hosts u@a/10.0.0.1:4 --format openmpi") ==
        Words{"a host file of Open MPI has no place for addresses of their own"});
  CHECK(notes("hosts a/10.0.0.1 --format slurm") ==
        Words{"a node list of Slurm has no place for slots, users and addresses of their own"});
  CHECK(notes("hosts a:4 --format slurm") ==
        Words{"a node list of Slurm has no place for slots and users"});
  Around nested = kSlurm;
  nested.variables["CORRO_STORE"] = "127.0.0.1:1";
  CHECK(complaint_in("hosts", nested)
            .starts_with("no hosts were given, and inside a worker of another job the hosts of "));
}

TEST_CASE("the doctor takes what a job takes, and needs neither a number nor a command") {
  const auto see = parse_command_line(words("doctor -H a:2,b:2 -p 2222 --json"), Around());
  REQUIRE(see);
  const auto& doctor = std::get<SeeDoctor>(*see);
  CHECK(doctor.spec.np == 4);
  CHECK(doctor.spec.hosts.size() == 2);
  CHECK(doctor.spec.reach.ssh_port == 2222);
  CHECK(doctor.spec.command.empty());
  CHECK(doctor.json);
  const auto small = parse_command_line(words("doctor -np 1 -H a:2 ./train --json"), Around());
  REQUIRE(small);
  CHECK(std::get<SeeDoctor>(*small).spec.np == 1);
  CHECK(std::get<SeeDoctor>(*small).spec.command == Words{"./train", "--json"});
  CHECK_FALSE(std::get<SeeDoctor>(*small).json);
  CHECK(complaint_in("doctor -np 3 --nonsense x") == "unrecognized arguments: --nonsense");
  CHECK(job("-np 1 --exclude-bad x").exclude_bad);
  const auto idle = parse_command_line(words("doctor --dry-run --exclude-bad"), Around());
  REQUIRE(idle);
  CHECK(std::get<SeeDoctor>(*idle).notes ==
        Words{"without effect: --dry-run, since the doctor starts no job",
              "without effect: --exclude-bad, since the doctor starts no job"});
}

TEST_CASE("the configuration file counts less than the command line, wherever that is") {
  const Around around{
      .files = {{"c.yaml",
                 "params:\n  cycle_time_ms: 3\n  cache_capacity: 7\n  hierarchical_allreduce: yes\n"
                 "logging:\n  hide_timestamp: true\n"}}};
  const RunJob run =
      job("-np 1 --cycle-time-ms 2 --config-file c.yaml --no-hierarchical-allreduce x", around);
  CHECK(run.spec.environment.tunables == Words{"HOROVOD_CYCLE_TIME=2.0", "HOROVOD_CACHE_CAPACITY=7",
                                               "HOROVOD_HIERARCHICAL_ALLREDUCE=0"});
  REQUIRE(run.notes.size() == 2);
  CHECK(run.notes[0] ==
        "c.yaml:6: nobody knows the key 'logging.hide_timestamp'; "
        "'logging.with_timestamp' may be meant");
}

TEST_CASE("hosts that come without a number are asked before the job is laid out") {
  Surroundings around = Around{};
  around.count_slots = [](const HostSpec&) { return std::optional<int>(); };
  const auto asked = [&](std::string_view line) {
    const auto request = parse_command_line(words(line), around);
    REQUIRE(request);
    REQUIRE(std::holds_alternative<AskHosts>(*request));
    return std::get<AskHosts>(*request);
  };
  const AskHosts ask = asked("-np 9 -p 2222 -H a,bob@b,c:4 --include a@c:2 train");
  CHECK(ask.spec.hosts == std::vector<HostSpec>{{"a", 1}, {"b", 1, "bob"}});
  CHECK(ask.spec.reach.ssh_port == 2222);
  CHECK(ask.needs_all);
  CHECK_FALSE(asked("-np 2 -H a --dry-run train").needs_all);
  CHECK_FALSE(asked("-np 2 -H a --exclude-bad train").needs_all);

  for (const char* line : {"-np 2 -H a", "-np 2 -H a --json x"})
    CHECK_FALSE(parse_command_line(words(line), around));  // what is wrong is said before
  for (const char* line : {"-np 2 -H a:1,b:1 x", "-np 2 -H a,b --slots-per-host 2 x", "-np 2 x"}) {
    const auto request = parse_command_line(words(line), around);
    REQUIRE(request);
    CHECK(std::holds_alternative<RunJob>(*request));
  }
  const auto doctor = parse_command_line(words("doctor -H a,b"), around);
  REQUIRE(doctor);
  CHECK(std::holds_alternative<SeeDoctor>(*doctor));

  around.count_slots = [](const HostSpec& host) { return host.name == "a" ? 4 : 0; };
  const auto request = parse_command_line(words("-np 3 -H a,b --include a:1,3@b x"), around);
  REQUIRE(request);
  const auto& run = std::get<RunJob>(*request);
  CHECK(run.spec.hosts == std::vector<HostSpec>{{"a", 2, "", {1, 3}}, {"b", 1}});
  CHECK(run.notes == std::vector<std::string>{"a slot for each GPU, else one: a:4,b:1"});
}

}  // namespace corro::cli
