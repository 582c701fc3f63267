#include "cli/parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "cli/arguments.h"
#include "cli/config_file.h"
#include "cli/host_options.h"
#include "cli/job_options.h"
#include "cli/refusal.h"
#include "cli/subcommands.h"
#include "cli/values.h"

namespace corro::cli {

using launcher::Allocation;
using launcher::HostSpec;

namespace {

// The file's options below those of the command line.
Result<std::vector<Given>> with_config(std::vector<Given> given, const Surroundings& around,
                                       std::vector<std::string>& notes) {
  const auto named = std::find_if(given.rbegin(), given.rend(), [](const Given& g) {
    return g.option->name() == "--config-file";
  });
  if (named == given.rend()) return given;
  const std::string path = named->values.front();
  auto content = around.read_file(path);
  if (!content) return std::move(content.error()).during("argument --config-file");
  auto file = read_config({path, *content, true}, given);
  if (!file) return file.error();
  notes.insert(notes.end(), file->notes.begin(), file->notes.end());
  return merged(file->options, given);
}

// How many workers, and where.  Where a scheduler has given hosts, their number may go without
// saying.
void apply_size(const Values& values, bool from_scheduler, ChosenHosts chosen,
                const Surroundings& around, RunJob& run) {
  run.notes.insert(run.notes.end(), chosen.notes.begin(), chosen.notes.end());
  const auto np = values.integer("--num-proc");
  run.spec.hosts = std::move(chosen.hosts);
  // Whoever has one node, and says how many workers, need not be told how many tasks it is for.
  if (from_scheduler && np && run.spec.hosts.size() == 1 && run.spec.hosts.front().chosen.empty())
    run.spec.hosts.front().slots = std::max(run.spec.hosts.front().slots, *np);
  for (const HostSpec& host : run.spec.hosts)
    if (!host.user.empty() && around.is_here(host))
      run.notes.push_back(
          fmt::format("{}@{} is this machine, where workers run as you are", host.user, host.name));
  if (run.spec.hosts.empty()) run.spec.hosts = {{.name = "localhost", .slots = np.value_or(1)}};
  run.spec.np = np.value_or(total_slots(run.spec.hosts));
}

// What the scheduler gave.  Whoever says how many workers can do without it; others are told why
// not.
Result<std::optional<Allocation>> allocation_for(const Values& values, const Surroundings& around,
                                                 std::vector<std::string>& notes) {
  auto allocation = ask_scheduler(around, notes);
  if (!allocation && !values.has("--num-proc"))
    return refuse(allocation.error().text() + "\n  Name the hosts with -H or -hostfile.");
  if (!allocation) {
    notes.push_back("the scheduler's hosts are not used: " + allocation.error().text());
    return std::optional<Allocation>();
  }
  const auto lsf_job = around.variable("LSB_JOBID");
  if (lsf_job && !*allocation)
    notes.push_back(fmt::format("LSF job {} names no hosts, so this one is used", *lsf_job));
  return allocation;
}

// Who looks for what is wrong goes on to look when a host cannot be asked.
Request ask(std::vector<HostSpec> hosts, const Values& values, launcher::JobSpec spec) {
  for (HostSpec& host : hosts) host.slots = 1;
  spec.np = static_cast<int>(hosts.size());
  spec.hosts = std::move(hosts);
  return AskHosts{std::move(spec), !values.has("--dry-run") && !values.has("--exclude-bad")};
}

// The doctor counts the GPUs of a host himself.
Surroundings without_asking(Surroundings around) {
  around.count_slots = [](const HostSpec&) { return 1; };
  return around;
}

// It goes to the hosts and no further.
Request see_doctor(const Values& values, RunJob run) {
  for (const auto* name : {"--dry-run", "--exclude-bad"})
    if (values.has(name))
      run.notes.push_back(fmt::format("without effect: {}, since the doctor starts no job", name));
  return SeeDoctor{std::move(run.spec), run.json, std::move(run.notes)};
}

Result<Request> job_of(const Values& values, const std::optional<Allocation>& allocation,
                       const Surroundings& around, RunJob run, bool for_doctor) {
  if (auto applied = apply_options(values, around.variable, run); !applied) return applied.error();
  run.dry_run = values.has("--dry-run");
  run.json = values.has("--json");
  run.exclude_bad = values.has("--exclude-bad");
  if (!for_doctor && run.json && !run.dry_run)
    return refuse("argument --json: goes with --dry-run, or with the doctor");
  if (!for_doctor && run.spec.command.empty()) return refuse("no command to run was given");
  auto chosen = choose_hosts(values, allocation, around);
  if (!chosen) return chosen.error();
  if (!chosen->to_ask.empty()) return ask(std::move(chosen->to_ask), values, std::move(run.spec));
  apply_size(values, allocation.has_value(), std::move(*chosen), around, run);
  if (auto applied = apply_sized_options(values, run); !applied) return applied.error();
  if (for_doctor) return see_doctor(values, std::move(run));
  return Request(std::move(run));
}

}  // namespace

Result<Request> parse_command_line(const std::vector<std::string>& words,
                                   const Surroundings& around) {
  if (auto subcommand = parse_subcommand(words, around)) return *subcommand;

  const bool for_doctor = asks_for_doctor(words);
  auto arguments = read_arguments(std::span(words).subspan(for_doctor ? 1 : 0));
  if (!arguments) return arguments.error();
  if (!arguments->options.empty()) {
    const auto last = arguments->options.back().option->name();
    if (last == "--help") return Request(ShowHelp{});
    if (last == "--version") return Request(ShowVersion{});
  }
  RunJob run;
  run.spec.command = std::move(arguments->command);
  const auto given = with_config(std::move(arguments->options), around, run.notes);
  if (!given) return given.error();
  const auto values = gather(*given);
  if (!values) return values.error();

  const bool check_build = values->has("--check-build");
  const bool ask = !check_build && !names_hosts(*values);
  const auto allocation = ask ? allocation_for(*values, around, run.notes)
                              : Result<std::optional<Allocation>>(std::nullopt);
  if (!allocation) return allocation.error();
  // Under LSF Horovod has never asked for it.
  const bool np_known = values->has("--num-proc") || *allocation || around.variable("LSB_JOBID");
  if (!check_build && !np_known && !for_doctor)
    return refuse("the following arguments are required: -np/--num-proc");
  if (!arguments->unknown.empty())
    return refuse(fmt::format("unrecognized arguments: {}", fmt::join(arguments->unknown, " ")));
  if (check_build) return Request(CheckBuild{values->has("--verbose")});
  return job_of(*values, *allocation, for_doctor ? without_asking(around) : around, std::move(run),
                for_doctor);
}

}  // namespace corro::cli
