#include "launcher/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace corro::launcher {

namespace {

bool same_place(const Slot& a, const Slot& b) {
  return a.local_rank == b.local_rank && a.index == b.index && a.host == b.host;
}

long long room_on(std::span<const HostSpec> hosts) {
  long long room = 0;
  for (const HostSpec& host : hosts) {
    CORRO_ASSERT(host.slots > 0);
    CORRO_ASSERT(host.chosen.empty() || std::ssize(host.chosen) == host.slots);
    room += host.slots;
  }
  return room;
}

// Scripts look for the first sentence, which is Horovod's.
Error too_few_slots(int np, long long room) {
  return {Errc::invalid_input,
          fmt::format("Requested more processes ({}) than there are available slots ({}). Ask for "
                      "fewer with -np, or name more hosts or slots with -H or --hostfile.",
                      np, room)};
}

// The first of a host's slots, as many as are taken.
void fill(const HostSpec& host, int taken, std::vector<Slot>& slots) {
  for (int local = 0; local < taken; ++local)
    slots.push_back({.host = host.name,
                     .rank = static_cast<int>(slots.size()),
                     .local_rank = local,
                     .local_size = taken,
                     .index = host.chosen.empty() ? local : host.chosen[local]});
}

}  // namespace

std::vector<std::string> Plan::hosts() const {
  std::vector<std::string> names;
  for (const Slot& slot : slots)
    if (slot.local_rank == 0) names.push_back(slot.host);
  return names;
}

Result<Plan> make_plan(std::span<const HostSpec> hosts, int np, std::uint64_t generation) {
  if (np < 1)
    return Error(Errc::invalid_input, fmt::format("asked for {} workers, which is none", np));
  const auto room = room_on(hosts);
  if (np > room) return too_few_slots(np, room);

  Plan plan{generation, {}};
  plan.slots.reserve(np);
  int deepest = 0;
  for (const HostSpec& host : hosts) {
    const int taken = std::min(host.slots, np - plan.size());
    fill(host, taken, plan.slots);
    deepest = std::max(deepest, taken);
  }

  // The hosts deep enough to reach a local rank form its cross group, in host order.
  std::vector<int> cross(deepest);
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

}  // namespace corro::launcher
