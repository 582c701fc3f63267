#include "cli/job_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "cli/refusal.h"

namespace corro::cli {

using launcher::ReadVariable;
using launcher::StdinTo;

namespace {

Text text_of(std::string_view name, const std::string& content) {
  return {fmt::format("argument {}", option(name).names), content};
}

Duration seconds(double n) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(n));
}

// What the option says; else what the launcher's own variable says.
Result<std::optional<int>> integer_or_variable(const Values& values, const ReadVariable& variable,
                                               std::string_view name) {
  if (const auto given = values.integer(name)) return std::optional(*given);
  const std::string fallback(option(name).fallback);
  const auto text = variable(fallback);
  if (!text) return std::optional<int>();
  const auto number = python_int(*text);
  const auto& limits = option(name).limits;
  if (!number || static_cast<double>(*number) < limits.least ||
      static_cast<double>(*number) > limits.most)
    return Error(Errc::invalid_input,
                 fmt::format("the variable {} must be a number of seconds, not {}", fallback,
                             python_repr(*text)));
  return std::optional(static_cast<int>(*number));
}

bool is_elastic(const Values& values) {
  return values.has("--host-discovery-script") || values.has("--min-np");
}

Result<Unit> apply_times(const Values& values, const ReadVariable& variable, RunJob& run) {
  if (is_elastic(values))
    if (const auto wait = integer_or_variable(values, variable, "--elastic-timeout"); !wait)
      return wait.error();
  if (const auto grace = values.number("--grace")) run.spec.grace = seconds(*grace);
  const auto start = integer_or_variable(values, variable, "--start-timeout");
  if (!start) return start.error();
  if (start->value_or(0) > 0) {  // Horovod takes 0 for nothing said
    run.spec.start_timeout = seconds(**start);
    run.spec.environment.tunables.push_back(fmt::format("HOROVOD_START_TIMEOUT={}", **start));
  }
  return Unit{};
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && name.find('\0') == name.npos;
}

Result<Unit> apply_exports(const Values& values, const ReadVariable& variable, RunJob& run) {
  for (const std::string& text : values.all("--export")) {
    const auto equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (!is_variable_name(name))
      return refuse(option("--export"), fmt::format("{} names no variable", python_repr(text)));
    if (launcher::is_ours(name))
      return refuse(option("--export"), fmt::format("{} is what each worker is told by us", name));
    const auto value = equals == text.npos ? variable(name) : text.substr(equals + 1);
    if (!value)
      return refuse(option("--export"),
                    fmt::format("{0} is not set here; say -x {0}=VALUE to give it one", name));
    run.spec.environment.exported.push_back(fmt::format("{}={}", name, *value));
  }
  return Unit{};
}

Result<Unit> apply_environment(const Values& values, const ReadVariable& variable, RunJob& run) {
  for (const auto& [name, value] : worker_variables(values))
    run.spec.environment.tunables.push_back(fmt::format("{}={}", name, value));
  for (const std::string& text : values.all("--env-rules")) {
    const auto rules = parse_env_rules(text);
    if (!rules) return rules.error();
    auto& all = run.spec.environment.rules;
    all.insert(all.end(), rules->begin(), rules->end());
  }
  return apply_exports(values, variable, run);
}

// Of an enumeration that lists the option's choices in their order.
template <class Enum>
Enum chosen(const Values& values, std::string_view name, Enum otherwise) {
  const auto choices = choices_of(option(name));
  const auto found = std::find(choices.begin(), choices.end(), values.text(name).value_or(""));
  return found == choices.end() ? otherwise : static_cast<Enum>(found - choices.begin());
}

// Horovod's levels in ours.  What we warn of is not for anyone to miss.
LogLevel log_level(std::string_view name) {
  if (name == "TRACE" || name == "DEBUG") return LogLevel::debug;
  return name == "INFO" ? LogLevel::info : LogLevel::warning;
}

Result<Unit> apply_output(const Values& values, RunJob& run) {
  run.log_from = log_level(values.text("--log-level").value_or("WARNING"));
  run.spec.verbose = values.has("--verbose") || run.log_from < LogLevel::warning;
  launcher::OutputStyle& style = run.spec.output;
  if (const auto format = values.text("--tag-format")) {
    auto tag = launcher::TagFormat::parse(text_of("--tag-format", *format));
    if (!tag) return tag.error();
    style.tag = std::move(*tag);
  }
  if (values.has("--prefix-output-with-timestamp")) style.tag = std::move(style.tag).with_time();
  style.color = chosen(values, "--color", style.color);
  style.directory = values.text("--output-filename").value_or("");
  if (values.has("--output-filename") && style.directory.empty())
    return refuse(option("--output-filename"), "the name of a directory is needed");
  return Unit{};
}

Result<StdinTo> parse_stdin(const std::string& text, int np) {
  if (text == "all") return StdinTo{StdinTo::Who::all, 0};
  if (text == "none") return StdinTo{StdinTo::Who::none, 0};
  const auto rank = parse_int(text);
  if (!rank || *rank < 0 || *rank >= np)
    return refuse(option("--stdin"),
                  fmt::format("expected a rank from 0 to {}, all or none, not {}", np - 1,
                              python_repr(text)));
  return StdinTo{StdinTo::Who::rank, static_cast<int>(*rank)};
}

// Both options mean the same list.
std::vector<std::string> interfaces_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto* name : {"--network-interfaces", "--network-interface"})
    for (const std::string& list : values.all(name))
      for (const auto each : split(list, ','))
        if (std::find(names.begin(), names.end(), each) == names.end()) names.emplace_back(each);
  return names;
}

Result<Unit> apply_placement(const Values& values, RunJob& run) {
  launcher::Placement& placement = run.spec.placement;
  placement.gpu_pinning = chosen(values, "--gpu-pinning", placement.gpu_pinning);
  placement.bind_to = chosen(values, "--bind-to", placement.bind_to);
  placement.report = values.has("--report-bindings");
  if (const auto text = values.text("--port-range")) {
    const auto ports = PortRange::parse(*text);
    if (!ports)
      return refuse(option("--port-range"),
                    fmt::format("{}, not {}", ports.error().text(), python_repr(*text)));
    placement.ports = *ports;
  }
  placement.interfaces = interfaces_of(values);
  return Unit{};
}

// In words as a shell has them: blanks part them, quotes hold them together.
Result<std::vector<std::string>> words_of(std::string_view name, const std::string& command) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (const char c : command) {
    if (quote ? c == quote : c == '\'' || c == '"') {
      quote = quote ? 0 : c;
      if (!word) word.emplace();
    } else if (!quote && (c == ' ' || c == '\t')) {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
    } else {
      if (!word) word.emplace();
      *word += c;
    }
  }
  if (word) words.push_back(*word);
  if (quote || words.empty())
    return refuse(option(name), fmt::format("{} is no command", python_repr(command)));
  return words;
}

Result<Unit> check_ssh_options(const Values& values, const launcher::Reach& reach) {
  for (const char* name : {"--ssh-port", "--ssh-identity-file"})
    if (values.has(name) && !takes_ssh_options(reach))
      return refuse(option(name), fmt::format("{} has no such option: only ssh is given it",
                                              python_repr(reach.rsh_agent.front())));
  return Unit{};
}

// Open MPI takes one of several, as in "ssh : rsh".  The MPI operator's script does not pass on
// what it is given to read, so what it runs is run with -i.
std::string agent_of_open_mpi(const std::string& value) {
  std::string first = value.substr(0, value.find(':'));
  first.erase(first.find_last_not_of(' ') + 1);
  const bool is_kubexec = first.find("/kubexec.sh") != first.npos;
  return is_kubexec ? "/opt/kube/kubectl exec -i {host} --" : first;
}

// The MPI operator on Kubernetes says in a variable of Open MPI's how its pods are reached.
Result<Unit> apply_reach(const Values& values, const ReadVariable& variable, RunJob& run) {
  launcher::Reach& reach = run.spec.reach;
  reach.ssh_port = values.integer("--ssh-port").value_or(0);
  reach.identities = values.all("--ssh-identity-file");
  reach.at_once = values.integer("--ssh-at-once").value_or(reach.at_once);
  reach.remembers = !values.has("--disable-cache");
  const auto policy = values.text("--host-key-policy").value_or("");
  reach.host_keys = policy == "strict"       ? launcher::HostKeyPolicy::strict
                    : policy == "accept-new" ? launcher::HostKeyPolicy::accept_new
                                             : launcher::HostKeyPolicy::from_config;
  constexpr auto kOfOpenMpi = "OMPI_MCA_plm_rsh_agent";
  auto command = values.text("--rsh-agent");
  if (const auto set = variable(kOfOpenMpi); !command && set && !set->empty()) {
    command = agent_of_open_mpi(*set);
    run.notes.push_back(
        fmt::format("hosts are reached with '{}', as {}={} says", *command, kOfOpenMpi, *set));
  }
  if (!command) return Unit{};
  auto words = words_of("--rsh-agent", *command);
  if (!words) return words.error();
  reach.rsh_agent = std::move(*words);
  return check_ssh_options(values, reach);
}

Result<Unit> check_elastic(const Values& values, int np) {
  const auto least = values.integer("--min-np"), most = values.integer("--max-np");
  if (least && *least > np)
    return refuse(option("--min-np"), fmt::format("{} is more than -np {}", *least, np));
  if (most && *most < np)
    return refuse(option("--max-np"), fmt::format("{} is less than -np {}", *most, np));
  const auto& range = values.all("--blacklist-cooldown-range");
  if (range.size() == 2 && *python_int(range[0]) > *python_int(range[1]))
    return refuse(option("--blacklist-cooldown-range"),
                  fmt::format("{} is more than {}", range[0], range[1]));
  return Unit{};
}

bool lacks_what_it_needs(const Option& option, const Values& values) {
  return !option.needs.empty() && !values.has(option.needs);
}

std::vector<std::string_view> given_with(const Values& values, State state) {
  std::vector<std::string_view> names;
  for (const Option& option : options())
    if (option.state == state && values.has(option.name()) && !lacks_what_it_needs(option, values))
      names.push_back(option.name());
  return names;
}

// Nothing is ignored in silence.
void add_notes(const Values& values, RunJob& run) {
  const auto later = given_with(values, State::later);
  if (!later.empty())
    run.notes.push_back(
        fmt::format("not available yet, so without effect: {}", fmt::join(later, ", ")));
  const auto passed = given_with(values, State::reaches_workers);
  if (!passed.empty())
    run.notes.push_back(
        fmt::format("passed on to the workers, where Corro does not act on it yet: {}",
                    fmt::join(passed, ", ")));
  for (const Option& option : options())
    if (values.has(option.name()) && lacks_what_it_needs(option, values))
      run.notes.push_back(fmt::format("without effect: {} needs {}", option.name(), option.needs));
  if (!run.spec.command.empty() && run.spec.command.front() == "--")
    run.notes.push_back("the '--' is taken for the program, as Horovod takes it; leave it out");
  if (values.has("--host-discovery-script"))
    run.notes.push_back(
        "elastic training is not available yet: the hosts stay as --host-discovery-script names "
        "them now");
  const auto warning = values.integer("--stall-check-warning-time-seconds").value_or(60);
  const auto shutdown = values.integer("--stall-check-shutdown-time-seconds").value_or(0);
  if (shutdown > 0 && shutdown < warning)
    run.notes.push_back(fmt::format(
        "--stall-check-shutdown-time-seconds {} comes before the warning after {} s, and will be "
        "ignored",
        shutdown, warning));
}

}  // namespace

Result<std::vector<launcher::EnvRule>> parse_env_rules(const std::string& text) {
  std::vector<launcher::EnvRule> rules;
  for (const auto each : split(text, ',')) {
    const bool drop = each.starts_with('-');
    const auto glob = each.substr(drop ? 1 : 0);
    if (glob.empty() || glob.find('=') != glob.npos)
      return refuse(
          option("--env-rules"),
          fmt::format("expected names as '-AWS_*,AWS_REGION', not {}", python_repr(text)));
    rules.push_back({std::string(glob), !drop});
  }
  return rules;
}

Result<Unit> apply_options(const Values& values, const ReadVariable& variable, RunJob& run) {
  run.spec.exit_code_policy = chosen(values, "--exit-code-policy", run.spec.exit_code_policy);
  Result<Unit> done = apply_times(values, variable, run);
  if (done) done = apply_environment(values, variable, run);
  if (done) done = apply_output(values, run);
  if (done) done = apply_placement(values, run);
  if (done) done = apply_reach(values, variable, run);
  if (done) add_notes(values, run);
  return done;
}

Result<Unit> apply_sized_options(const Values& values, RunJob& run) {
  if (const auto text = values.text("--stdin")) {
    const auto to = parse_stdin(*text, run.spec.np);
    if (!to) return to.error();
    run.spec.stdin_to = *to;
  }
  return check_elastic(values, run.spec.np);
}

}  // namespace corro::cli
