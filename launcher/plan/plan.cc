#include "launcher/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kolo {

namespace {

bool same_place(const Slot& a, const Slot& b) {
  return a.host == b.host && a.local_rank == b.local_rank;
}

}  // namespace

std::vector<std::string> Plan::hosts() const {
  std::vector<std::string> names;
  for (const Slot& slot : slots)
    if (slot.local_rank == 0) names.push_back(slot.host);
  return names;
}

Result<Plan> make_plan(std::span<const HostSpec> hosts, int np, std::uint64_t generation) {
  const auto room = std::accumulate(hosts.begin(), hosts.end(), 0LL,
                                    [](auto n, const HostSpec& h) { return n + h.slots; });
  if (np < 1)
    return Error(Errc::invalid_input, fmt::format("asked for {} workers, which is none", np));
  if (np > room)
    return Error(Errc::invalid_input,
                 fmt::format("asked for {} workers, but the hosts have {} slots", np, room));

  Plan plan{generation, {}};
  std::vector<int> taken;  // taken[i]: workers placed on hosts[i]
  for (const HostSpec& host : hosts) {
    taken.push_back(std::min(host.slots, np - plan.size()));
    for (int local = 0; local < taken.back(); ++local)
      plan.slots.push_back({host.name, plan.size(), local, 0, taken.back(), 0});
  }

  // The hosts deep enough to reach a local rank form its cross group, in host order.
  std::vector<int> cross(taken.empty() ? 0 : *std::max_element(taken.begin(), taken.end()));
  for (Slot& slot : plan.slots) slot.cross_rank = cross[slot.local_rank]++;
  for (Slot& slot : plan.slots) slot.cross_size = cross[slot.local_rank];
  return plan;
}

Diff diff(const Plan& now, const Plan& next) {
  Diff out;
  const int common = std::min(now.size(), next.size());
  for (int rank = 0; rank < common; ++rank) {
    if (same_place(now.slots[rank], next.slots[rank])) {
      out.keep.push_back(rank);
    } else {
      out.stop.push_back(rank);
      out.start.push_back(rank);
    }
  }
  for (int rank = common; rank < now.size(); ++rank) out.stop.push_back(rank);
  for (int rank = common; rank < next.size(); ++rank) out.start.push_back(rank);
  return out;
}

}  // namespace kolo
