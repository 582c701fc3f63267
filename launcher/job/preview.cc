#include "launcher/job/preview.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <unordered_set>

#include "base/process.h"
#include "base/status_page.h"
#include "base/text.h"
#include "launcher/doctor/diagnose.h"
#include "launcher/job/here.h"
#include "launcher/machine/script.h"

namespace corro::launcher {

namespace {

namespace fs = std::filesystem;
using Verdict = Check::Verdict;

constexpr int kExitUsage = 2;

Check good(std::string what, std::string text) {
  return {Verdict::good, std::move(what), std::move(text), 0};
}

Check doubtful(std::string what, std::string text) {
  return {Verdict::doubtful, std::move(what), std::move(text), 0};
}

Check bad(std::string what, std::string text, int exit_code) {
  return {Verdict::bad, std::move(what), std::move(text), exit_code};
}

bool is_all_here(const Plan& plan) {
  return hosts_here(plan).size() == plan.hosts().size();
}

// The hosts that have workers; of the others is told that they have none.
std::vector<HostSpec> used_hosts(const JobSpec& spec, const Plan& plan, std::vector<Check>& to) {
  const auto hosts = plan.hosts();
  const std::unordered_set<std::string> used(hosts.begin(), hosts.end());
  std::vector<HostSpec> out;
  for (const HostSpec& host : spec.hosts)
    if (used.contains(host.name))
      out.push_back(host);
    else
      to.push_back(doubtful("host " + host.name, "no worker is left for it"));
  return out;
}

std::string hosts_text(const std::vector<std::string>& names) {
  std::vector<HostSpec> hosts;
  for (const std::string& name : names) hosts.push_back({.name = name});
  return (hosts.size() == 1 ? "host " : "hosts ") + print_hosts(hosts, HostFormat::slurm);
}

Check check_of(const doctor::Finding& finding) {
  const bool is_bad = finding.severity == doctor::Severity::bad;
  const auto otherwise =
      finding.severity == doctor::Severity::warning ? Verdict::doubtful : Verdict::good;
  return {is_bad ? Verdict::bad : otherwise, hosts_text(finding.hosts), finding.what,
          is_bad ? doctor::exit_code(finding.about) : 0, finding.fix};
}

// What the doctor says of hosts that are elsewhere, and of all with them.
void consult_hosts(const JobSpec& spec, const WatchConsult& watch, std::vector<Check>& to) {
  const auto consultation = consult(spec, watch);
  std::set<std::string> ill;
  for (const doctor::Finding& finding : doctor::diagnose(consultation)) {
    ill.insert(finding.hosts.begin(), finding.hosts.end());
    to.push_back(check_of(finding));
  }
  for (const doctor::HostReport& host : consultation.hosts)
    if (!ill.contains(host.host)) to.push_back(good("host " + host.host, "is well"));
}

void check_hosts(JobSpec spec, const Plan& plan, const WatchConsult& watch,
                 std::vector<Check>& to) {
  spec.hosts = used_hosts(spec, plan, to);
  if (!is_all_here(plan)) return consult_hosts(spec, watch, to);
  for (const HostSpec& host : spec.hosts)
    to.push_back(good("host " + host.name, "is this machine"));
}

// Two workers that share a core wait for each other.
Check check_cores(const Plan& plan) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  const auto text = fmt::format("{} workers on this machine, {} cores", plan.size(), cores);
  return plan.size() > cores ? doubtful("cores", text) : good("cores", text);
}

Check check_network(const JobSpec& spec, const Plan& plan) {
  const auto fit = check_interfaces_here(spec.placement, plan);
  return fit ? good("network", fmt::format("{}", fmt::join(spec.placement.interfaces, ", ")))
             : bad("network", fit.error().text(), kExitUsage);
}

// The program, and the script if it is told to run one.
void check_program(const JobSpec& spec, std::vector<Check>& to) {
  std::vector<std::string> env;
  for (const auto& [name, value] : user_variables(spec.environment))
    env.push_back(fmt::format("{}={}", name, value));
  const auto program = find_program(spec.command.front(), env, spec.cwd);
  const bool missing = !program && program.error().code() == Errc::not_found;
  to.push_back(
      program ? good("program", *program)
              : bad("program", program.error().text(), missing ? kExitNoProgram : kExitCannotRun));
  const auto script = look_for_script({spec.cwd, spec.command, env, {}});
  if (!script) return;
  to.push_back(script->can_read ? good("script", script->path)
                                : bad("script", script->why_not,
                                      script->exists ? kExitCannotRun : kExitNoProgram));
}

// Whether the directory is there, or could be made.
Check check_output(const std::string& directory) {
  std::error_code error;
  fs::path nearest = fs::absolute(directory, error);
  while (!fs::exists(nearest, error) && nearest.has_relative_path())
    nearest = nearest.parent_path();
  if (!fs::is_directory(nearest, error))
    return bad("output", fmt::format("{} is not a directory", nearest.string()), kExitInternal);
  // Only trying tells: root may do everything, but not in /proc or on a read-only disk.
  const auto probe = (nearest / fmt::format(".corro-{}", ::getpid())).string();
  if (::mkdir(probe.c_str(), 0700) != 0)
    return bad("output", Error::from_errno("writing to " + nearest.string()).text(), kExitInternal);
  ::rmdir(probe.c_str());
  return good("output", fmt::format("{} can be written to", directory));
}

constexpr auto kAtTheStart = "(chosen at the start)";

// What is secret, or not known before the start, is only named.
std::string shown(const Variable& variable) {
  static const std::map<std::string, std::string> kNamed = {
      {"CORRO_JOB_KEY", "(secret)"},
      {"CORRO_STORE", kAtTheStart},
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR", kAtTheStart},
      {"HOROVOD_GLOO_RENDEZVOUS_PORT", kAtTheStart},
      {"MASTER_ADDR", kAtTheStart},
      {"MASTER_PORT", kAtTheStart},
  };
  const auto named = kNamed.find(variable.first);
  return named == kNamed.end() ? variable.second : named->second;
}

HostShare share_of_some_host(const Placement& placement) {
  HostShare share{.ip = kAtTheStart, .interface = kAtTheStart, .chosen = placement.interfaces};
  if (placement.gpu_pinning != GpuPinning::none)
    for (const auto* name : {"CORRO_GPU", "CUDA_VISIBLE_DEVICES"})
      share.gpu.emplace_back(name, "(where its host has GPUs)");
  return share;
}

// A worker's recipe, without what is its own alone and what the launcher has just like that.
std::vector<Variable> common_variables(const JobSpec& spec, const Plan& plan) {
  const Setting setting{spec.command, spec.environment, spec.cwd, {}, {}, spec.placement.ports, {}};
  const Slot& slot = plan.slots.front();
  const auto recipe = Recipes(setting, plan).recipe_for(slot, share_of_some_host(spec.placement));
  std::set<Variable> others;
  for (auto& variable : user_variables({spec.environment.inherited, spec.environment.rules}))
    others.insert(std::move(variable));
  for (auto& variable : slot_variables(slot, plan)) others.insert(std::move(variable));
  std::map<std::string, std::string> out = {{kStatusVariable, kAtTheStart}};
  for (const std::string& entry : recipe.env) {
    const auto equals = entry.find('=');
    Variable variable{entry.substr(0, equals), entry.substr(equals + 1)};
    if (others.contains(variable)) continue;
    out[variable.first] = shown(variable);
  }
  for (const auto name : split(out["CORRO_DEFAULTS"], ','))
    if (name == "OMP_NUM_THREADS") out["OMP_NUM_THREADS"] = "(a share of its host's cores)";
  return {out.begin(), out.end()};
}

// One set of codes, whether a job or the doctor finds it.
static_assert(doctor::exit_code(doctor::Class::name) == kExitName);
static_assert(doctor::exit_code(doctor::Class::reach) == kExitUnreached);
static_assert(doctor::exit_code(doctor::Class::host_key) == kExitHostKey);
static_assert(doctor::exit_code(doctor::Class::login) == kExitLogin);
static_assert(doctor::exit_code(doctor::Class::machine) == kExitMachine);
static_assert(doctor::exit_code(doctor::Class::network) == kExitNetwork);

}  // namespace

int Preview::exit_code() const {
  for (const Check& check : checks)
    if (check.verdict == Verdict::bad) return check.exit_code;
  return 0;
}

Preview preview(const JobSpec& spec, const WatchConsult& watch) {
  Preview out;
  auto plan = make_plan(spec.hosts, spec.np, 0);
  if (plan) {
    out.plan = std::move(*plan);
    out.checks.push_back(good("slots", fmt::format("enough for {} workers", spec.np)));
    check_hosts(spec, *out.plan, watch, out.checks);
    if (!spec.placement.interfaces.empty()) out.checks.push_back(check_network(spec, *out.plan));
    if (is_all_here(*out.plan)) out.checks.push_back(check_cores(*out.plan));
    out.common = common_variables(spec, *out.plan);
  } else {
    out.checks.push_back(bad("slots", plan.error().text(), kExitUsage));
  }
  if (!out.plan || is_all_here(*out.plan)) check_program(spec, out.checks);
  if (!spec.output.directory.empty()) out.checks.push_back(check_output(spec.output.directory));
  const WorkerEnvironment inherited{spec.environment.inherited, spec.environment.rules};
  out.inherited = static_cast<int>(user_variables(inherited).size());
  return out;
}

}  // namespace corro::launcher
