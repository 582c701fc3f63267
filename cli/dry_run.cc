#include "cli/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <unordered_map>

#include "base/text.h"
#include "cli/options.h"
#include "cli/table.h"

namespace corro::cli {

using launcher::Check;
using launcher::HostSpec;
using launcher::JobSpec;
using launcher::Plan;
using launcher::Preview;
using launcher::Slot;
using launcher::StdinTo;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShown = 64;  // rows of a table

template <class T>
std::span<const T> first_of(const std::vector<T>& all) {
  return std::span(all).first(std::min(all.size(), kShown));
}

std::string and_more(std::size_t count) {
  return count > kShown ? fmt::format("  and {} more; --json lists them all\n", count - kShown)
                        : "";
}

// The first and the last rank of each host.
using Ranks = std::unordered_map<std::string, std::pair<int, int>>;

Ranks ranks_by_host(const Plan& plan) {
  Ranks out;
  for (const Slot& slot : plan.slots)
    out.try_emplace(slot.host, slot.rank, slot.rank).first->second.second = slot.rank;
  return out;
}

std::string ranks_text(const Ranks& ranks, const std::string& host) {
  const auto found = ranks.find(host);
  if (found == ranks.end()) return "-";
  const auto [first, last] = found->second;
  return first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
}

std::string hosts_section(const JobSpec& spec, const std::optional<Plan>& plan) {
  const Ranks ranks = plan ? ranks_by_host(*plan) : Ranks();
  Table table({"host", "slots", "ranks"});
  for (const HostSpec& host : first_of(spec.hosts))
    table.add({host.user.empty() ? host.name : host.user + "@" + host.name,
               std::to_string(host.slots), ranks_text(ranks, host.name)});
  return "hosts:\n" + table.text() + and_more(spec.hosts.size());
}

std::string plan_section(const Plan& plan) {
  Table table({"rank", "host", "slot", "local", "cross"});
  for (const Slot& slot : first_of(plan.slots)) {
    table.add({std::to_string(slot.rank), slot.host, std::to_string(slot.index),
               fmt::format("{}/{}", slot.local_rank, slot.local_size),
               fmt::format("{}/{}", slot.cross_rank, slot.cross_size)});
  }
  return "\nplan:\n" + table.text() + and_more(plan.slots.size());
}

// What else was asked for, or goes without saying, by the options' names; none: any will do.
using Settings = std::vector<std::pair<std::string, std::optional<std::string>>>;

std::string readers(const StdinTo& to) {
  switch (to.who) {
    case StdinTo::Who::rank:
      return std::to_string(to.rank);
    case StdinTo::Who::all:
      return "all";
    case StdinTo::Who::none:
      return "none";
  }
  return {};
}

Settings settings_of(const JobSpec& spec) {
  const launcher::Placement& placement = spec.placement;
  const auto choice = [](const char* name, auto value) {
    return std::pair(name, std::string(choice_for(option(name), value)));
  };
  const auto ports = placement.ports.first ? std::optional(placement.ports.text()) : std::nullopt;
  return {{"--grace", fmt::format("{}", std::chrono::duration<double>(spec.grace).count())},
          {"--stdin", readers(spec.stdin_to)},
          choice("--gpu-pinning", placement.gpu_pinning),
          choice("--bind-to", placement.bind_to),
          {"--port-range", ports},
          choice("--exit-code-policy", spec.exit_code_policy)};
}

std::string settings_section(const JobSpec& spec) {
  Table table({"option", "value"});
  for (const auto& [name, value] : settings_of(spec)) table.add({name, value.value_or("any")});
  return "\noptions:\n" + table.text();
}

std::string recipe_section(const JobSpec& spec, const Preview& preview) {
  std::string command;
  for (const std::string& word : spec.command)
    command += (command.empty() ? "" : " ") + shell_word(word);
  std::string text = fmt::format(
      "\neach worker:\n  runs    {}\n  in      {}\n  gets    {} of the launcher's variables, and\n",
      command, spec.cwd, preview.inherited);
  for (const auto& [name, value] : preview.common)
    text += fmt::format("          {}={}\n", name, value);
  text += "          HOROVOD_RANK, HOROVOD_LOCAL_RANK and the like, as in the plan\n";
  return text;
}

std::string_view mark(Check::Verdict verdict) {
  switch (verdict) {
    case Check::Verdict::good:
      return "ok";
    case Check::Verdict::doubtful:
      return "??";
    case Check::Verdict::bad:
      return "NO";
  }
  return {};
}

std::string checks_section(const Preview& preview) {
  Table table({"", "check", "result"});
  // What is bad comes first, lest it is among those that are not shown.
  auto checks = preview.checks;
  std::stable_sort(checks.begin(), checks.end(), [](const Check& a, const Check& b) {
    return (a.verdict == Check::Verdict::bad) > (b.verdict == Check::Verdict::bad);
  });
  for (const Check& check : first_of(checks))
    table.add({std::string(mark(check.verdict)), check.what,
               check.fix.empty() ? check.text : fmt::format("{}; fix: {}", check.text, check.fix)});
  return "\nchecks:\n" + table.text() + and_more(checks.size());
}

Json json_of(const HostSpec& host) {
  Json json = {{"host", host.name}, {"slots", host.slots}};
  if (!host.user.empty()) json["user"] = host.user;
  if (!host.address.empty()) json["address"] = host.address;
  if (!host.chosen.empty()) json["chosen"] = host.chosen;
  if (host.slots == 0) json["slots"] = nullptr;  // nobody said how many
  return json;
}

Json json_of(const Slot& slot, const Plan& plan) {
  Json env = Json::object();
  for (const auto& [name, value] : slot_variables(slot, plan)) env[name] = value;
  return {{"rank", slot.rank},
          {"host", slot.host},
          {"slot", slot.index},
          {"local_rank", slot.local_rank},
          {"local_size", slot.local_size},
          {"cross_rank", slot.cross_rank},
          {"cross_size", slot.cross_size},
          {"env", std::move(env)}};
}

std::string dumped(const Json& json) {
  // A host name or a variable may have any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string dry_run_text(const JobSpec& spec, const Preview& preview) {
  std::string text = hosts_section(spec, preview.plan);
  if (preview.plan) text += plan_section(*preview.plan) + recipe_section(spec, preview);
  text += settings_section(spec);
  text += checks_section(preview);
  return text + (preview.exit_code() == 0 ? "\nNothing was started.\n"
                                          : "\nThe job cannot be started like this.\n");
}

std::string dry_run_json(const JobSpec& spec, const Preview& preview) {
  Json out;
  out["np"] = spec.np;
  out["command"] = spec.command;
  out["cwd"] = spec.cwd;
  out["hosts"] = Json::array();
  for (const HostSpec& host : spec.hosts) out["hosts"].push_back(json_of(host));
  out["workers"] = Json::array();
  if (preview.plan)
    for (const Slot& slot : preview.plan->slots)
      out["workers"].push_back(json_of(slot, *preview.plan));
  out["env"] = Json::object();
  for (const auto& [name, value] : preview.common) out["env"][name] = value;
  out["inherited_variables"] = preview.inherited;
  for (const auto& [name, value] : settings_of(spec))
    out["options"][name] = value ? Json(*value) : Json();
  out["checks"] = Json::array();
  for (const Check& check : preview.checks)
    out["checks"].push_back({{"check", check.what},
                             {"ok", check.verdict != Check::Verdict::bad},
                             {"doubtful", check.verdict == Check::Verdict::doubtful},
                             {"text", check.text},
                             {"fix", check.fix}});
  out["exit_code"] = preview.exit_code();
  return dumped(out);
}

std::string hosts_json(const std::vector<HostSpec>& hosts) {
  Json out = Json::array();
  for (const HostSpec& host : hosts) out.push_back(json_of(host));
  return dumped(out);
}

}  // namespace corro::cli
