#include "launcher/plan/recipe.h"

#include <fmt/format.h>

#include <map>

namespace kolo {

namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

// What means something to the launcher's own shell only.
bool stays_here(std::string_view name) {
  return name == "OLDPWD" || name == "_" || name.starts_with("BASH_FUNC_") ||
         name == "_HOROVOD_SECRET_KEY";
}

// Of a name that is there twice the first counts, as for getenv.
Variables inherited(const std::vector<std::string>& env) {
  Variables out;
  for (const std::string& entry : env) {
    const auto equals = entry.find('=');
    if (equals == entry.npos || equals == 0) continue;
    const auto name = entry.substr(0, equals);
    if (!stays_here(name)) out.try_emplace(name, entry.substr(equals + 1));
  }
  return out;
}

void put(Variables& to, const Setting& setting, const Plan& plan, const std::string& ip) {
  to["KOLO_STORE"] = setting.store.text();
  to["KOLO_JOB_KEY"] = setting.key.hex();
  to["KOLO_GENERATION"] = std::to_string(plan.generation);
  to["KOLO_ADDRESS"] = ip;
  to["HOROVOD_CONTROLLER"] = "gloo";
  to["HOROVOD_CPU_OPERATIONS"] = "gloo";
  to["PYTHONUNBUFFERED"] = "1";
}

void put(Variables& to, const Slot& slot, const Plan& plan) {
  to["HOROVOD_HOSTNAME"] = slot.host;
  to["HOROVOD_RANK"] = std::to_string(slot.rank);
  to["HOROVOD_SIZE"] = std::to_string(plan.size());
  to["HOROVOD_LOCAL_RANK"] = std::to_string(slot.local_rank);
  to["HOROVOD_LOCAL_SIZE"] = std::to_string(slot.local_size);
  to["HOROVOD_CROSS_RANK"] = std::to_string(slot.cross_rank);
  to["HOROVOD_CROSS_SIZE"] = std::to_string(slot.cross_size);
}

}  // namespace

Recipe make_recipe(const Setting& setting, const Slot& slot, const Plan& plan,
                   const std::string& ip) {
  Variables variables = inherited(setting.env);
  put(variables, setting, plan, ip);
  put(variables, slot, plan);
  Recipe recipe{setting.command, {}, setting.cwd};
  for (const auto& [name, value] : variables)
    recipe.env.push_back(fmt::format("{}={}", name, value));
  return recipe;
}

}  // namespace kolo
