#include "launcher/job/arrangement.h"

#include "launcher/network/interfaces.h"

namespace corro::launcher {

namespace {

Setting setting_for(const JobSpec& spec, const Plan& plan, const Key& key, const Address& store,
                    const Routes& routes, const FactsByHost& facts) {
  const std::string& first = plan.slots.front().host;
  const Address master{routes.hosts.at(first).ip, facts.at(first).free_port};
  return {spec.command, spec.environment, spec.cwd, store, master, spec.placement.ports, key};
}

// Where all hosts are this machine there are no doors, and all interfaces that the user names are
// here.
HostShare share_of(const Door& route, const agent::Facts& facts,
                   const std::vector<std::string>& interfaces) {
  return {.ip = route.ip,
          .interface = route.interface,
          .chosen = facts.doors.empty() ? interfaces : present(interfaces, facts.doors),
          .cores = static_cast<int>(facts.cores),
          .gpu = {}};
}

}  // namespace

Arrangement::Arrangement(const JobSpec& spec, const Plan& plan, const Key& key,
                         const Address& store, const Routes& routes, const FactsByHost& facts,
                         std::vector<Place> workers)
    : spec_(spec),
      plan_(plan),
      workers_(std::move(workers)),
      setting_(setting_for(spec, plan, key, store, routes, facts)),
      recipes_(setting_, plan_) {
  for (const auto& [host, route] : routes.hosts)
    shares_[host] = share_of(route, facts.at(host), spec.placement.interfaces);
}

agent::Start Arrangement::start_of(int rank) const {
  const Slot& slot = plan_.slots[rank];
  HostShare share = shares_.at(slot.host);
  share.gpu = workers_[rank].gpu;
  Recipe recipe = recipes_.recipe_for(slot, share);
  return {static_cast<std::uint32_t>(rank),
          std::move(recipe.argv),
          std::move(recipe.env),
          std::move(recipe.cwd),
          static_cast<std::uint32_t>(spec_.umask),
          spec_.stdin_to.reaches(rank),
          workers_[rank].cpus};
}

}  // namespace corro::launcher
