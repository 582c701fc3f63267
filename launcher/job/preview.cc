#include "launcher/job/preview.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>

#include "base/process.h"

namespace kolo {

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

void check_hosts(const JobSpec& spec, const Plan& plan, std::vector<Check>& to) {
  const auto names = names_of_this_machine();
  std::set<std::string> used;
  for (const std::string& host : plan.hosts()) used.insert(host);
  for (const HostSpec& host : spec.hosts) {
    const auto what = "host " + host.name;
    if (!used.contains(host.name))
      to.push_back(doubtful(what, "no worker is left for it"));
    else if (is_this_machine(host.name, names))
      to.push_back(good(what, "is this machine"));
    else
      to.push_back(doubtful(what, "is another machine, and was not asked; see horovodrun doctor"));
  }
}

// Two workers that share a core wait for each other.
void check_cores(const Plan& plan, std::vector<Check>& to) {
  const auto names = names_of_this_machine();
  const auto here = std::count_if(plan.slots.begin(), plan.slots.end(), [&](const Slot& slot) {
    return is_this_machine(slot.host, names);
  });
  if (here == 0) return;
  const auto cores = std::thread::hardware_concurrency();
  const auto text = fmt::format("{} workers on this machine, {} cores", here, cores);
  to.push_back(here > cores ? doubtful("cores", text) : good("cores", text));
}

Check check_program(const JobSpec& spec) {
  std::vector<std::string> env;
  for (const auto& [name, value] : user_variables(spec.environment))
    env.push_back(fmt::format("{}={}", name, value));
  const auto program = find_program(spec.command.front(), env, spec.cwd);
  if (program) return good("program", *program);
  const bool missing = program.error().code() == Errc::not_found;
  return bad("program", program.error().text(), missing ? kExitNoProgram : kExitCannotRun);
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
  const auto probe = (nearest / fmt::format(".kolo-{}", ::getpid())).string();
  if (::mkdir(probe.c_str(), 0700) != 0)
    return bad("output", Error::from_errno("writing to " + nearest.string()).text(), kExitInternal);
  ::rmdir(probe.c_str());
  return good("output", fmt::format("{} can be written to", directory));
}

// What is secret, or not known before the start, is only named.
std::vector<Variable> common_variables(const JobSpec& spec, const Plan& plan) {
  std::vector<Variable> out;
  for (const auto* entries : {&spec.environment.tunables, &spec.environment.exported})
    for (const std::string& entry : *entries) {
      const auto equals = entry.find('=');
      out.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
    }
  for (auto& variable : job_variables({}, plan)) {
    if (variable.first == "KOLO_JOB_KEY") variable.second = "(secret)";
    for (const auto name : {"KOLO_STORE", "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                            "HOROVOD_GLOO_RENDEZVOUS_PORT", "MASTER_ADDR", "MASTER_PORT"})
      if (variable.first == name) variable.second = "(chosen at the start)";
    out.push_back(std::move(variable));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

int Preview::exit_code() const {
  for (const Check& check : checks)
    if (check.verdict == Verdict::bad) return check.exit_code;
  return 0;
}

Preview preview(const JobSpec& spec) {
  Preview out;
  auto plan = make_plan(spec.hosts, spec.np, 0);
  if (plan) {
    out.plan = std::move(*plan);
    out.checks.push_back(good("slots", fmt::format("enough for {} workers", spec.np)));
    check_hosts(spec, *out.plan, out.checks);
    check_cores(*out.plan, out.checks);
    out.common = common_variables(spec, *out.plan);
  } else {
    out.checks.push_back(bad("slots", plan.error().text(), kExitUsage));
  }
  out.checks.push_back(check_program(spec));
  if (!spec.output.directory.empty()) out.checks.push_back(check_output(spec.output.directory));
  WorkerEnvironment inherited{spec.environment.inherited, spec.environment.rules};
  out.inherited = static_cast<int>(user_variables(inherited).size());
  return out;
}

}  // namespace kolo
