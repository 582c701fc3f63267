#include "cli/job_options.h"

#include <catch2/catch.hpp>

#include "tests/unit/cli/around.h"
#include "tests/unit/cli/words.h"

namespace corro::cli {

using launcher::StdinTo;

using namespace std::chrono_literals;

namespace {

Result<RunJob> applied(std::string_view line, const Around& around = {}) {
  auto request = parse_command_line(words("-np 4 " + std::string(line) + " x"), around);
  if (!request) return request.error();
  return std::get<RunJob>(*request);
}

RunJob job(std::string_view line, const Around& around = {}) {
  auto run = applied(line, around);
  if (!run) FAIL(run.error().text());
  return *run;
}

std::string complaint_in(std::string_view line) {
  const auto run = applied(line);
  return run ? "none" : run.error().text();
}

}  // namespace

TEST_CASE("how other machines are reached") {
  const launcher::Reach none = job("").spec.reach;
  CHECK(none.rsh_agent.empty());
  CHECK(none.host_keys == launcher::HostKeyPolicy::from_config);
  CHECK(none.at_once == 64);
  const launcher::Reach reach =
      job("-p 2222 -i k1 -i k2 --host-key-policy accept-new --ssh-at-once 8").spec.reach;
  CHECK(reach.ssh_port == 2222);
  CHECK(reach.identities == Words{"k1", "k2"});
  CHECK(reach.host_keys == launcher::HostKeyPolicy::accept_new);
  CHECK(reach.at_once == 8);
  CHECK(job("--host-key-policy strict").spec.reach.host_keys == launcher::HostKeyPolicy::strict);
  CHECK(complaint_in("--host-key-policy no").find("invalid choice: 'no'") != std::string::npos);
  CHECK(job("--network-interfaces eth0,eth1 --network-interface ib0 --network-interface eth0")
            .spec.placement.interfaces == Words{"eth0", "eth1", "ib0"});
}

TEST_CASE("a command in ssh's place is words as a shell has them") {
  const auto agent = [](const std::string& text) {
    const auto request = parse_command_line({"-np", "4", "--rsh-agent", text, "x"}, Around{});
    return request ? std::get<RunJob>(*request).spec.reach.rsh_agent
                   : Words{request.error().text()};
  };
  CHECK(agent("ssh") == Words{"ssh"});
  CHECK(agent("kubectl exec -i {host} --") == Words{"kubectl", "exec", "-i", "{host}", "--"});
  CHECK(agent("'a b'  \"c'd\" ''") == Words{"a b", "c'd", ""});
  CHECK(agent("'a").front().find("\"'a\" is no command") != std::string::npos);
  CHECK(agent(" ").front().find("is no command") != std::string::npos);
}

TEST_CASE("a port and identity files are for ssh only") {
  for (const char* given : {"-p 22", "-i k"}) {
    const std::string line = given;
    CHECK(complaint_in(line + " --rsh-agent /usr/bin/ssh") == "none");
    CHECK(complaint_in(line + " --rsh-agent rsh").find("'rsh' has no such option") !=
          std::string::npos);
  }
}

TEST_CASE("the MPI operator's way to its pods is taken, unless the user names another") {
  Around around;
  around.variables["OMPI_MCA_plm_rsh_agent"] = "/etc/mpi/kubexec.sh";
  const RunJob run = job("", around);
  CHECK(run.spec.reach.rsh_agent == Words{"/opt/kube/kubectl", "exec", "-i", "{host}", "--"});
  CHECK(run.notes == Words{"hosts are reached with '/opt/kube/kubectl exec -i {host} --', as "
                           "OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh says"});
  CHECK(job("--rsh-agent ssh", around).spec.reach.rsh_agent == Words{"ssh"});
  around.variables["OMPI_MCA_plm_rsh_agent"] = "ssh -q : rsh";
  CHECK(job("", around).spec.reach.rsh_agent == Words{"ssh", "-q"});
  CHECK(job("", around).notes.front().starts_with("hosts are reached with 'ssh -q', as "));
}

TEST_CASE("every tunable reaches the workers in its variable") {
  const auto [line, variables] = GENERATE(table<std::string, Words>({
      {"--fusion-threshold-mb 64", {"HOROVOD_FUSION_THRESHOLD=67108864"}},
      {"--fusion-threshold-mb 0", {"HOROVOD_FUSION_THRESHOLD=0"}},
      {"--cycle-time-ms 2.5", {"HOROVOD_CYCLE_TIME=2.5"}},
      {"--cycle-time-ms 5", {"HOROVOD_CYCLE_TIME=5.0"}},
      {"--cache-capacity 0", {"HOROVOD_CACHE_CAPACITY=0"}},
      {"--hierarchical-allreduce", {"HOROVOD_HIERARCHICAL_ALLREDUCE=1"}},
      {"--no-hierarchical-allreduce", {"HOROVOD_HIERARCHICAL_ALLREDUCE=0"}},
      {"--hierarchical-allgather", {"HOROVOD_HIERARCHICAL_ALLGATHER=1"}},
      {"--no-hierarchical-allgather", {"HOROVOD_HIERARCHICAL_ALLGATHER=0"}},
      {"--torus-allreduce", {"HOROVOD_TORUS_ALLREDUCE=1"}},
      {"--no-torus-allreduce", {"HOROVOD_TORUS_ALLREDUCE=0"}},
      {"--autotune", {"HOROVOD_AUTOTUNE=1"}},
      {"--no-autotune", {"HOROVOD_AUTOTUNE=0"}},
      {"--autotune-log-file f --autotune-warmup-samples 1", {}},  // without --autotune
      {"--autotune --autotune-log-file f --autotune-warmup-samples 1 "
       "--autotune-steps-per-sample 2 --autotune-bayes-opt-max-samples 3 "
       "--autotune-gaussian-process-noise 0.4",
       {"HOROVOD_AUTOTUNE=1", "HOROVOD_AUTOTUNE_LOG=f", "HOROVOD_AUTOTUNE_WARMUP_SAMPLES=1",
        "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE=2", "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES=3",
        "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE=0.4"}},
      {"--timeline-filename DYNAMIC", {"HOROVOD_TIMELINE=DYNAMIC"}},
      {"--timeline-mark-cycles", {}},  // without a file
      {"--timeline-mark-cycles --timeline-filename t",
       {"HOROVOD_TIMELINE=t", "HOROVOD_TIMELINE_MARK_CYCLES=1"}},
      {"--no-timeline-mark-cycles --timeline-filename t",
       {"HOROVOD_TIMELINE=t", "HOROVOD_TIMELINE_MARK_CYCLES=0"}},
      {"--no-stall-check", {"HOROVOD_STALL_CHECK_DISABLE=1"}},
      {"--stall-check", {"HOROVOD_STALL_CHECK_DISABLE=0"}},
      {"--stall-check-warning-time-seconds 9", {"HOROVOD_STALL_CHECK_TIME_SECONDS=9"}},
      {"--stall-check-shutdown-time-seconds 99", {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=99"}},
      {"--mpi-threads-disable", {"HOROVOD_MPI_THREADS_DISABLE=1"}},
      {"--no-mpi-threads-disable", {"HOROVOD_MPI_THREADS_DISABLE=0"}},
      {"--tcp", {"NCCL_IB_DISABLE=1"}},
      {"--num-nccl-streams 2", {"HOROVOD_NUM_NCCL_STREAMS=2"}},
      {"--thread-affinity 0,2", {"HOROVOD_THREAD_AFFINITY=0,2"}},
      {"--gloo-timeout-seconds 60", {"HOROVOD_GLOO_TIMEOUT_SECONDS=60"}},
      {"--log-level DEBUG", {"HOROVOD_LOG_LEVEL=DEBUG"}},
      {"--log-with-timestamp", {"HOROVOD_LOG_HIDE_TIME=0"}},
      {"--log-without-timestamp", {"HOROVOD_LOG_HIDE_TIME=1"}},
      {"--log-hide-timestamp", {"HOROVOD_LOG_HIDE_TIME=1"}},
      {"--no-log-hide-timestamp", {"HOROVOD_LOG_HIDE_TIME=0"}},
      {"--start-timeout 60", {"HOROVOD_START_TIMEOUT=60"}},
      {"--start-timeout 0", {}},
  }));
  CAPTURE(line);
  CHECK(job(line).spec.environment.tunables == variables);
}

TEST_CASE("times may come from variables that Horovod reads") {
  CHECK(job("--start-timeout 60").spec.start_timeout == 60s);
  CHECK(job("--start-timeout 0").spec.start_timeout == 30s);
  const Around around{.variables = {{"HOROVOD_START_TIMEOUT", "45"}}};
  CHECK(job("", around).spec.start_timeout == 45s);
  CHECK(job("--start-timeout 60", around).spec.start_timeout == 60s);
  const auto run = applied("", Around{.variables = {{"HOROVOD_START_TIMEOUT", "soon"}}});
  REQUIRE_FALSE(run);
  CHECK(run.error().text() ==
        "the variable HOROVOD_START_TIMEOUT must be a number of seconds, not 'soon'");
  const Around elastic{.variables = {{"HOROVOD_ELASTIC_TIMEOUT", "x"}}};
  CHECK(applied("", elastic));
  CHECK_FALSE(applied("--min-np 2", elastic));
}

TEST_CASE("variables are exported by name or with a value") {
  const Around around{.variables = {{"HOME", "/home/ada"}}};
  CHECK(job("-x HOME -x A=b=c -x EMPTY=", around).spec.environment.exported ==
        Words{"HOME=/home/ada", "A=b=c", "EMPTY="});
  CHECK(complaint_in("-x HOME") ==
        "argument -x/--export: HOME is not set here; say -x HOME=VALUE to give it one");
  CHECK(complaint_in("-x =a") == "argument -x/--export: '=a' names no variable");
  CHECK(complaint_in("-x ''") == "argument -x/--export: '' names no variable");
  CHECK(complaint_in("-x HOROVOD_RANK=3") ==
        "argument -x/--export: HOROVOD_RANK is what each worker is told by us");
}

TEST_CASE("rules for variables are read in their order") {
  CHECK(job("--env-rules=-AWS_*,AWS_REGION --env-rules=-X").spec.environment.rules ==
        std::vector<launcher::EnvRule>{{"AWS_*", false}, {"AWS_REGION", true}, {"X", false}});
  for (const auto text : {"''", "a,", "-", "A=b"}) {
    CAPTURE(text);
    CHECK(complaint_in(std::string("--env-rules=") + (text == std::string("''") ? "" : text))
              .starts_with("argument --env-rules: expected names as '-AWS_*,AWS_REGION', not "));
  }
}

TEST_CASE("output is shown and kept as asked for") {
  const auto style = job("--output-filename logs --color never -prefix-timestamp "
                         "--tag-format {rank}:")
                         .spec.output;
  CHECK(style.directory == "logs");
  CHECK(style.color == launcher::Color::never);
  CHECK(style.tag == *launcher::TagFormat::parse({"", "{time}{rank}:"}));
  CHECK(job("--color always").spec.output.color == launcher::Color::always);
  CHECK(complaint_in("--tag-format {rnk}")
            .starts_with("argument --tag-format: there is no 'rnk'\n  {rnk}\n  ^~~~~\n"));
  CHECK(complaint_in("--output-filename ''") ==
        "argument --output-filename: the name of a directory is needed");
}

TEST_CASE("where workers are put, and who reads, reaches the job") {
  CHECK(job("--gpu-pinning exclusive").spec.placement.gpu_pinning ==
        launcher::GpuPinning::exclusive);
  CHECK(job("--gpu-pinning none").spec.placement.gpu_pinning == launcher::GpuPinning::none);
  CHECK(job("--bind-to core").spec.placement.bind_to == launcher::BindTo::core);
  CHECK(job("--bind-to numa").spec.placement.bind_to == launcher::BindTo::numa);
  CHECK(job("--port-range 20000-20100").spec.placement.ports == PortRange{20000, 20100});
  CHECK(job("--port-range 4711").spec.placement.ports == PortRange{4711, 4711});
  for (const auto text : {"", "x", "0", "70000", "5-4", "1-", "-5", "1-2-3"}) {
    CAPTURE(text);
    CHECK(complaint_in(std::string("--port-range=") + text) ==
          "argument --port-range: expected ports as 20000-20100, not '" + std::string(text) + "'");
  }
  CHECK(job("--stdin 3").spec.stdin_to == StdinTo{StdinTo::Who::rank, 3});
  CHECK(job("--stdin all").spec.stdin_to.who == StdinTo::Who::all);
  CHECK(job("--stdin none").spec.stdin_to.who == StdinTo::Who::none);
  CHECK(complaint_in("--stdin 4") ==
        "argument --stdin: expected a rank from 0 to 3, all or none, not '4'");
  CHECK(job("--exit-code-policy max").spec.exit_code_policy == launcher::ExitCodePolicy::max);
  CHECK(job("--exit-code-policy rank0").spec.exit_code_policy == launcher::ExitCodePolicy::rank0);
}

TEST_CASE("what contradicts itself is refused") {
  const auto [line, text] = GENERATE(table<std::string, std::string>({
      {"--min-np 5", "argument --min-np/--min-num-proc: 5 is more than -np 4"},
      {"--max-np 3", "argument --max-np/--max-num-proc: 3 is less than -np 4"},
      {"--blacklist-cooldown-range 9 3", "argument --blacklist-cooldown-range: 9 is more than 3"},
  }));
  CHECK(complaint_in(line) == text);
}

TEST_CASE("nothing is ignored in silence") {
  CHECK(job("-p 22 --mpi --reset-limit 3").notes ==
        Words{"not available yet, so without effect: --reset-limit, --mpi"});
  CHECK(job("--tcp --autotune").notes ==
        Words{"passed on to the workers, where Corro does not act on it yet: --autotune, --tcp"});
  CHECK(job("--stall-check-shutdown-time-seconds 30").notes.back() ==
        "--stall-check-shutdown-time-seconds 30 comes before the warning after 60 s, and will be "
        "ignored");
  CHECK(job("--gloo --disable-cache --grace 1").notes.empty());
  CHECK(job("--autotune-warmup-samples 3 --timeline-mark-cycles").notes ==
        Words{"without effect: --autotune-warmup-samples needs --autotune",
              "without effect: --timeline-mark-cycles needs --timeline-filename"});
  CHECK(job("--slots-per-host 3").notes ==
        Words{"without effect: --slots-per-host, since no hosts are named"});
  CHECK(job("-H a:4 --slots-per-host 3").notes ==
        Words{"without effect: --slots-per-host, since every host has its number"});
  CHECK(job("-H ada@localhost:4").notes ==
        Words{"ada@localhost is this machine, where workers run as you are"});
  CHECK(job("--").notes ==
        Words{"the '--' is taken for the program, as Horovod takes it; leave it out"});
  for (const Option& each : options()) {
    if (each.state == State::works || each.needs != "") continue;
    CAPTURE(each.names);
    const std::string value = each.choices.empty() ? "3" : std::string(choices_of(each).front());
    std::string line(each.name());
    if (each.takes_value()) line += " " + value;
    if (each.arity == 2) line += " 4";
    if (each.name() == "--max-np") line = "--max-np 9";
    if (each.name() == "--stall-check-shutdown-time-seconds") line += "00";
    const auto notes = job(line).notes;
    REQUIRE(notes.size() == 1);
    CHECK(notes.front().find(each.name()) != std::string::npos);
  }
}

TEST_CASE("--log-level is the launcher's too, in its own words") {
  CHECK(job("").log_from == LogLevel::warning);
  CHECK(job("--log-level TRACE").log_from == LogLevel::debug);
  CHECK(job("--log-level INFO").log_from == LogLevel::info);
  CHECK(job("--log-level FATAL").log_from == LogLevel::warning);
  CHECK(job("--log-level INFO").spec.verbose);
  CHECK_FALSE(job("--log-level WARNING").spec.verbose);
}

}  // namespace corro::cli
