#include "launcher/plan/recipe.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>

namespace kolo {

namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

// What means something to the launcher's own shell only.
bool stays_here(std::string_view name) {
  return name == "OLDPWD" || name == "_" || name.starts_with("BASH_FUNC_") ||
         name == "_HOROVOD_SECRET_KEY";
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

Variables variables_of(const WorkerEnvironment& environment) {
  Variables out;
  // Of a name that is there twice the first counts, as for getenv.
  for (const std::string& entry : environment.inherited)
    if (auto [name, value] = cut(entry); !name.empty() && may_inherit(name, environment.rules))
      out.try_emplace(std::move(name), std::move(value));
  for (const auto* entries : {&environment.tunables, &environment.exported})
    for (const std::string& entry : *entries) {
      auto [name, value] = cut(entry);
      out[std::move(name)] = std::move(value);
    }
  return out;
}

void put(Variables& to, std::vector<Variable> variables) {
  for (auto& [name, value] : variables) to[std::move(name)] = std::move(value);
}

}  // namespace

std::vector<Variable> user_variables(const WorkerEnvironment& environment) {
  const Variables variables = variables_of(environment);
  return {variables.begin(), variables.end()};
}

std::vector<Variable> job_variables(const Setting& setting, const Plan& plan,
                                    const std::string& ip) {
  return {
      {"KOLO_STORE", setting.store.text()},
      {"KOLO_JOB_KEY", setting.key.hex()},
      {"KOLO_GENERATION", std::to_string(plan.generation)},
      {"KOLO_ADDRESS", ip},
      {"HOROVOD_CONTROLLER", "gloo"},
      {"HOROVOD_CPU_OPERATIONS", "gloo"},
      {"PYTHONUNBUFFERED", "1"},
  };
}

std::vector<Variable> slot_variables(const Slot& slot, const Plan& plan) {
  return {
      {"HOROVOD_HOSTNAME", slot.host},
      {"HOROVOD_RANK", std::to_string(slot.rank)},
      {"HOROVOD_SIZE", std::to_string(plan.size())},
      {"HOROVOD_LOCAL_RANK", std::to_string(slot.local_rank)},
      {"HOROVOD_LOCAL_SIZE", std::to_string(slot.local_size)},
      {"HOROVOD_CROSS_RANK", std::to_string(slot.cross_rank)},
      {"HOROVOD_CROSS_SIZE", std::to_string(slot.cross_size)},
  };
}

bool is_ours(std::string_view name) {
  const auto has = [&](const std::vector<Variable>& variables) {
    return std::any_of(variables.begin(), variables.end(),
                       [&](const Variable& v) { return v.first == name; });
  };
  return has(slot_variables({}, {})) || has(job_variables({}, {}, ""));
}

Recipe make_recipe(const Setting& setting, const Slot& slot, const Plan& plan,
                   const std::string& ip) {
  Variables variables = variables_of(setting.environment);
  put(variables, job_variables(setting, plan, ip));
  put(variables, slot_variables(slot, plan));
  Recipe recipe{setting.command, {}, setting.cwd};
  for (const auto& [name, value] : variables)
    recipe.env.push_back(fmt::format("{}={}", name, value));
  return recipe;
}

}  // namespace kolo
