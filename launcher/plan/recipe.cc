#include "launcher/plan/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/status_page.h"
#include "base/text.h"

namespace corro::launcher {

namespace {

const std::string kDefaults = "CORRO_DEFAULTS";  // names of what we set because nobody had

// What means something to the launcher's own shell only.
bool stays_here(std::string_view name) {
  return name == "OLDPWD" || name == "_" || name.starts_with("BASH_FUNC_") ||
         name == "_HOROVOD_SECRET_KEY" || name == kStatusVariable;
}

bool may_inherit(const std::string& name, const std::vector<EnvRule>& rules) {
  if (stays_here(name)) return false;
  const auto rule = std::find_if(rules.rbegin(), rules.rend(), [&](const EnvRule& r) {
    return ::fnmatch(r.glob.c_str(), name.c_str(), 0) == 0;
  });
  return rule == rules.rend() || rule->give;
}

// "NAME=value"; an empty name: it is no variable.
std::pair<std::string, std::string> cut(const std::string& entry) {
  const auto equals = entry.find('=');
  if (equals == entry.npos) return {};
  return {entry.substr(0, equals), entry.substr(equals + 1)};
}

// A job inside a job does not take the outer job's defaults for the user's wishes.
void forget_defaults(Variables& variables) {
  const auto list = variables.find(kDefaults);
  if (list == variables.end()) return;
  const std::string names = list->second;
  for (const auto name : split(names, ','))
    if (const auto found = variables.find(name); found != variables.end()) variables.erase(found);
  variables.erase(kDefaults);
}

void put(Variables& to, std::vector<Variable> variables) {
  for (auto& [name, value] : variables) to[std::move(name)] = std::move(value);
}

void put(Variables& to, const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    auto [name, value] = cut(entry);
    to[std::move(name)] = std::move(value);
  }
}

// Without those of -x.
Variables before_exports(const WorkerEnvironment& environment) {
  Variables out;
  // Of a name that is there twice the first counts, as for getenv.
  for (const std::string& entry : environment.inherited)
    if (auto [name, value] = cut(entry); !name.empty() && may_inherit(name, environment.rules))
      out.try_emplace(std::move(name), std::move(value));
  forget_defaults(out);
  put(out, environment.tunables);
  return out;
}

// By which a worker's libraries find each other.  NCCL alone may use several.
std::vector<Variable> interface_variables(const HostShare& share) {
  const auto several =
      share.chosen.empty() ? share.interface : fmt::format("{}", fmt::join(share.chosen, ","));
  return {
      {"HOROVOD_GLOO_IFACE", share.interface},
      {"NCCL_SOCKET_IFNAME", several},
      {"GLOO_SOCKET_IFNAME", share.interface},
  };
}

}  // namespace

std::vector<Variable> user_variables(const WorkerEnvironment& environment) {
  Variables variables = before_exports(environment);
  put(variables, environment.exported);
  return {variables.begin(), variables.end()};
}

std::vector<Variable> job_variables(const Setting& setting, const Plan& plan) {
  return {
      {"CORRO_STORE", setting.store.text()},
      {"CORRO_JOB_KEY", setting.key.hex()},
      {"CORRO_GENERATION", std::to_string(plan.generation)},
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR", setting.store.ip},
      {"HOROVOD_GLOO_RENDEZVOUS_PORT", std::to_string(setting.store.port)},
      {"HOROVOD_CONTROLLER", "gloo"},
      {"HOROVOD_CPU_OPERATIONS", "gloo"},
      {"MASTER_ADDR", setting.master.ip},
      {"MASTER_PORT", std::to_string(setting.master.port)},
      {"PYTHONUNBUFFERED", "1"},
  };
}

// In Horovod's names, and in those of torch.distributed, whose group is a host.
std::vector<Variable> slot_variables(const Slot& slot, const Plan& plan) {
  const auto first = static_cast<std::size_t>(slot.rank - slot.local_rank);  // of its host
  const int host = first < plan.slots.size() ? plan.slots[first].cross_rank : 0;
  const auto rank = std::to_string(slot.rank), size = std::to_string(plan.size());
  const auto local_rank = std::to_string(slot.local_rank);
  const auto local_size = std::to_string(slot.local_size);
  return {
      {"HOROVOD_HOSTNAME", slot.host},
      {"HOROVOD_RANK", rank},
      {"HOROVOD_SIZE", size},
      {"HOROVOD_LOCAL_RANK", local_rank},
      {"HOROVOD_LOCAL_SIZE", local_size},
      {"HOROVOD_CROSS_RANK", std::to_string(slot.cross_rank)},
      {"HOROVOD_CROSS_SIZE", std::to_string(slot.cross_size)},
      {"RANK", rank},
      {"WORLD_SIZE", size},
      {"LOCAL_RANK", local_rank},
      {"LOCAL_WORLD_SIZE", local_size},
      {"GROUP_RANK", std::to_string(host)},
  };
}

// A thread for each core of the host in each worker would be too many.
std::vector<Variable> default_variables(const Slot& slot, const HostShare& share) {
  std::vector<Variable> out = {
      {"OMP_NUM_THREADS", std::to_string(std::max(1, share.cores / slot.local_size))}};
  for (auto& variable : interface_variables(share)) out.push_back(std::move(variable));
  return out;
}

bool is_ours(std::string_view name) {
  const auto has = [&](const std::vector<Variable>& variables) {
    return std::any_of(variables.begin(), variables.end(),
                       [&](const Variable& v) { return v.first == name; });
  };
  return name == "CORRO_ADDRESS" || name == "CORRO_PORT_RANGE" || name == "CORRO_GPU" ||
         name == kDefaults || name == kStatusVariable || has(slot_variables({}, {})) ||
         has(job_variables({}, {}));
}

// For hundreds of workers: what they have in common is looked at once.
Recipes::Recipes(const Setting& setting, const Plan& plan)
    : setting_(setting), plan_(plan), common_(before_exports(setting.environment)) {
  put(exported_, setting.environment.exported);
  put(common_, setting.environment.exported);
  put(common_, job_variables(setting, plan));
  // Of a job that this one runs in.
  common_.erase("CORRO_GPU");
  common_.erase("CORRO_PORT_RANGE");
  if (setting.ports.first != 0) common_["CORRO_PORT_RANGE"] = setting.ports.text();
}

Recipe Recipes::recipe_for(const Slot& slot, const HostShare& share) const {
  Variables own;
  // Between options and -x; the defaults are below both.
  if (!share.chosen.empty())
    for (auto& [name, value] : interface_variables(share))
      if (!exported_.contains(name)) own.emplace(name, value);
  std::string defaults;
  for (const auto& [name, value] : default_variables(slot, share))
    if (!common_.contains(name) && own.try_emplace(name, value).second)
      defaults += (defaults.empty() ? "" : ",") + name;
  put(own, slot_variables(slot, plan_));
  put(own, share.gpu);
  own["CORRO_ADDRESS"] = share.ip;
  own[kDefaults] = defaults;

  Recipe recipe{setting_.command, {}, setting_.cwd};
  const auto by_name = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::vector<Variable> all;
  std::set_union(own.begin(), own.end(), common_.begin(), common_.end(), std::back_inserter(all),
                 by_name);
  for (const auto& [name, value] : all) recipe.env.push_back(fmt::format("{}={}", name, value));
  return recipe;
}

}  // namespace corro::launcher
