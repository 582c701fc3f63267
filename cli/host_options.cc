#include "cli/host_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace corro::cli {

using launcher::HostList;
using launcher::HostSpec;

namespace {

Result<HostList> from_file(const std::string& path, const Surroundings& around) {
  auto content = around.read_file(path);
  if (!content) return std::move(content.error()).during("argument -hostfile/--hostfile");
  return launcher::parse_host_file({path, *content});
}

Result<HostList> from_script(const std::string& program, const Surroundings& around) {
  const auto printed = around.run_script(program);
  if (!printed) return printed.error();
  return launcher::parse_host_file({"what " + program + " prints", *printed});
}

Result<HostList> from_options(const Values& values, const Surroundings& around) {
  if (const auto text = values.text("--hosts"))
    return launcher::parse_hosts({"argument -H/--hosts", *text}, around.read_file);
  if (const auto path = values.text("--hostfile")) return from_file(*path, around);
  if (const auto program = values.text("--host-discovery-script"))
    return from_script(*program, around);
  return HostList{};
}

Result<std::vector<HostSpec>> narrowed(std::vector<HostSpec> hosts, const Values& values) {
  Result<std::vector<HostSpec>> out = std::move(hosts);
  const auto all = [&](const char* name) {
    return fmt::format("{}", fmt::join(values.all(name), "@"));
  };
  if (const auto text = all("--include"); values.has("--include"))
    out = include(std::move(*out), {"argument --include", text});
  if (const auto text = all("--exclude"); out && values.has("--exclude"))
    out = exclude(std::move(*out), {"argument --exclude", text});
  return out;
}

// "a slot for each GPU, else one: a:4,b:1"
std::string told(const std::vector<HostSpec>& counted) {
  constexpr std::size_t kFew = 8;
  if (counted.size() <= kFew)
    return "a slot for each GPU, else one: " + print_hosts(counted, launcher::HostFormat::horovod);
  return fmt::format("a slot for each GPU, else one: {} on {} hosts", total_slots(counted),
                     counted.size());
}

// --slots-per-host is for hosts that come without a number; a scheduler's number is nobody's wish.
void give_slots(ChosenHosts& chosen, bool from_scheduler, const Values& values,
                const Surroundings& around) {
  const auto fixed = values.integer("--slots-per-host");
  if (fixed && from_scheduler)
    for (HostSpec& host : chosen.hosts) host.slots = 0;
  std::vector<HostSpec> counted;
  bool any = false;
  for (HostSpec& host : chosen.hosts) {
    if (host.slots > 0) continue;
    any = true;
    const auto slots = fixed ? fixed : around.count_slots(host);
    if (!slots) {
      chosen.to_ask.push_back(host);
      continue;
    }
    host.slots = std::clamp(*slots, 1, launcher::kSlotsLimit);
    if (!fixed) counted.push_back(host);
  }
  if (fixed && !any)
    chosen.notes.push_back("without effect: --slots-per-host, since every host has its number");
  if (!counted.empty()) chosen.notes.push_back(told(counted));
}

}  // namespace

bool names_hosts(const Values& values) {
  return values.has("--hosts") || values.has("--hostfile") || values.has("--host-discovery-script");
}

Result<std::optional<launcher::Allocation>> ask_scheduler(const Surroundings& around,
                                                          std::vector<std::string>& notes) {
  auto found = launcher::find_allocation(around.variable, around.read_file);
  // A job that starts another inside one of its workers has its own part of the hosts only.
  if (!around.variable("CORRO_STORE")) return found;
  if (found && *found)
    notes.push_back(
        fmt::format("inside a worker of another job the hosts of {} are not used; "
                    "-H or -hostfile name others than localhost",
                    (*found)->from));
  return std::optional<launcher::Allocation>();
}

Result<ChosenHosts> choose_hosts(const Values& values,
                                 const std::optional<launcher::Allocation>& allocation,
                                 const Surroundings& around) {
  auto list = allocation ? allocation->list : from_options(values, around);
  if (!list) return list.error();
  ChosenHosts out{std::move(list->hosts), {}, std::move(list->notes)};
  if (out.hosts.empty()) {
    for (const auto name : {"--include", "--exclude"})
      if (values.has(name))
        return Error(Errc::invalid_input,
                     fmt::format("argument {}: there are no hosts to choose from", name));
    if (values.has("--slots-per-host"))
      out.notes.push_back("without effect: --slots-per-host, since no hosts are named");
    return out;
  }
  give_slots(out, allocation.has_value(), values, around);
  if (!out.to_ask.empty()) return out;
  if (allocation)
    out.notes.push_back(fmt::format("hosts from {}: {}, {} slots", allocation->from,
                                    print_hosts(out.hosts, launcher::HostFormat::slurm),
                                    total_slots(out.hosts)));
  auto rest = narrowed(std::move(out.hosts), values);
  if (!rest) return rest.error();
  out.hosts = std::move(*rest);
  return out;
}

}  // namespace corro::cli
