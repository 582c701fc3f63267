#include "launcher/job/here.h"

#include "launcher/network/interfaces.h"

namespace corro::launcher {

std::set<std::string> hosts_here(const Plan& plan) {
  const auto names = names_of_this_machine();
  std::set<std::string> out;
  for (std::string& host : plan.hosts())
    if (is_this_machine(host, names)) out.insert(std::move(host));
  return out;
}

Result<Unit> check_interfaces_here(const Placement& placement, const Plan& plan) {
  if (placement.interfaces.empty()) return Unit{};
  const auto here = hosts_here(plan);
  if (here.empty()) return Unit{};
  const bool others = here.size() < plan.hosts().size();
  return check_interfaces(placement.interfaces, others ? own_addresses() : inner_addresses(),
                          others);
}

}  // namespace corro::launcher
