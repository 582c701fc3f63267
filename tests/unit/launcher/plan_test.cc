#include "launcher/plan/plan.h"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace corro::launcher {

namespace {

using Hosts = std::vector<HostSpec>;
using Ranks = std::vector<int>;

Plan plan_of(const Hosts& hosts, int np) {
  auto plan = make_plan(hosts, np, 0);
  REQUIRE(plan);
  return *plan;
}

// As many slots as it had, spread over twice as many.
void choose_some(HostSpec& host) {
  for (int i = 0; i < host.slots; ++i) host.chosen.push_back(2 * i + *rc::gen::inRange(0, 2));
}

// Hosts with names of their own, and an np that they have room for.
struct Wish {
  Hosts hosts;
  int np = 1;
};

void showValue(const Wish& wish, std::ostream& to) {
  to << "-np " << wish.np << " -H " << print_hosts(wish.hosts, HostFormat::horovod);
}

rc::Gen<Wish> wish() {
  return rc::gen::exec([] {
    Wish wish;
    int room = 0;
    for (int i = *rc::gen::inRange(1, 12); i > 0; --i) {
      wish.hosts.push_back({"h" + std::to_string(i), *rc::gen::inRange(1, 9)});
      if (*rc::gen::arbitrary<bool>()) choose_some(wish.hosts.back());
      room += wish.hosts.back().slots;
    }
    wish.np = *rc::gen::inRange(1, room + 1);
    return wish;
  });
}

// The workers of each host, and those of each local rank, in rank order.
template <class Key>
auto grouped(const Plan& plan, Key key) {
  std::map<std::decay_t<decltype(key(plan.slots[0]))>, std::vector<Slot>> groups;
  for (const Slot& slot : plan.slots) groups[key(slot)].push_back(slot);
  return groups;
}

// By rank: where its process runs.  What is left of `now` when the stopped are gone and the new
// ones have come must be `next`.
using Place = std::tuple<std::string, int, int>;
std::map<int, Place> places(const Plan& plan, const Ranks& ranks) {
  std::map<int, Place> out;
  for (const int rank : ranks) {
    const Slot& slot = plan.slots[rank];
    out[rank] = {slot.host, slot.local_rank, slot.index};
  }
  return out;
}

Ranks all_of(const Plan& plan) {
  Ranks ranks;
  for (const Slot& slot : plan.slots) ranks.push_back(slot.rank);
  return ranks;
}

}  // namespace

TEST_CASE("hosts are filled one after the other") {
  CHECK(plan_of({{"a", 2}, {"b", 1}}, 3).slots == std::vector<Slot>{{.host = "a",
                                                                     .rank = 0,
                                                                     .local_rank = 0,
                                                                     .cross_rank = 0,
                                                                     .local_size = 2,
                                                                     .cross_size = 2},
                                                                    {.host = "a",
                                                                     .rank = 1,
                                                                     .local_rank = 1,
                                                                     .cross_rank = 0,
                                                                     .local_size = 2,
                                                                     .cross_size = 1,
                                                                     .index = 1},
                                                                    {.host = "b",
                                                                     .rank = 2,
                                                                     .local_rank = 0,
                                                                     .cross_rank = 1,
                                                                     .local_size = 1,
                                                                     .cross_size = 2}});
}

TEST_CASE("exactly np workers start, whatever room there is") {
  const Plan plan = plan_of({{"a", 4}, {"b", 4}}, 2);
  CHECK(plan.size() == 2);
  CHECK(plan.slots[0].local_size == 2);
  CHECK(plan.hosts() == std::vector<std::string>{"a"});
}

TEST_CASE("a cross group holds the hosts that are deep enough, in host order") {
  const Plan plan = plan_of({{"a", 1}, {"b", 3}, {"c", 2}}, 6);
  //   rank        0  1  2  3  4  5
  //   host        a  b  b  b  c  c
  //   local rank  0  0  1  2  0  1
  Ranks cross_ranks, cross_sizes;
  for (const Slot& slot : plan.slots) {
    cross_ranks.push_back(slot.cross_rank);
    cross_sizes.push_back(slot.cross_size);
  }
  CHECK(cross_ranks == Ranks{0, 1, 0, 0, 2, 1});
  CHECK(cross_sizes == Ranks{3, 3, 2, 1, 3, 2});
}

TEST_CASE("what cannot be placed is an error that gives both numbers") {
  const Hosts hosts = {{"a", 2}, {"b", 1}};
  const auto too_many = make_plan(hosts, 4, 0);
  REQUIRE_FALSE(too_many);
  CHECK(too_many.error() ==
        Error(Errc::invalid_input,
              "Requested more processes (4) than there are available slots (3). Ask for fewer with "
              "-np, or name more hosts or slots with -H or --hostfile."));
  CHECK_FALSE(make_plan(Hosts{}, 1, 0));
  CHECK_FALSE(make_plan(hosts, 0, 0));
  CHECK_FALSE(make_plan(hosts, -1, 0));
}

TEST_CASE("of a host's slots those that were chosen are taken, in their order") {
  const Plan plan = plan_of({{"a", 2, "", {1, 3}}, {"b", 3, "", {0, 2, 5}}}, 4);
  Ranks locals, indices;
  for (const Slot& slot : plan.slots) {
    locals.push_back(slot.local_rank);
    indices.push_back(slot.index);
  }
  CHECK(locals == Ranks{0, 1, 0, 1});
  CHECK(indices == Ranks{1, 3, 0, 2});
}

TEST_CASE("slots beyond an int are counted") {
  const int many = 2'000'000'000;
  CHECK(plan_of({{"a", many}, {"b", many}, {"c", many}}, 1).size() == 1);
}

TEST_CASE("a plan places everyone once") {
  rc::prop("ranks are 0 … np-1, and np of them", [] {
    const auto w = *wish();
    const Plan plan = *make_plan(w.hosts, w.np, 7);
    RC_ASSERT(plan.generation == 7u);
    RC_ASSERT(plan.size() == w.np);
    for (int rank = 0; rank < plan.size(); ++rank) RC_ASSERT(plan.slots[rank].rank == rank);
  });
  rc::prop("local ranks count a host's workers without a gap; no host has more than its slots", [] {
    const auto w = *wish();
    const Plan plan = *make_plan(w.hosts, w.np, 0);
    const auto on_host = grouped(plan, [](const Slot& s) { return s.host; });
    for (const auto& [host, slots] : on_host) {
      const auto spec =
          std::find_if(w.hosts.begin(), w.hosts.end(),
                       [&, name = host](const HostSpec& h) { return h.name == name; });
      RC_ASSERT(static_cast<int>(slots.size()) <= spec->slots);
      for (int local = 0; local < static_cast<int>(slots.size()); ++local) {
        RC_ASSERT(slots[local].local_rank == local);
        RC_ASSERT(slots[local].local_size == static_cast<int>(slots.size()));
        RC_ASSERT(slots[local].rank == slots[0].rank + local);
      }
    }
  });
  rc::prop("a worker sits in the slot that its host chose for its local rank", [] {
    const auto w = *wish();
    const Plan plan = *make_plan(w.hosts, w.np, 0);
    for (const Slot& slot : plan.slots) {
      const auto spec = std::find_if(w.hosts.begin(), w.hosts.end(),
                                     [&](const HostSpec& h) { return h.name == slot.host; });
      RC_ASSERT(slot.index ==
                (spec->chosen.empty() ? slot.local_rank : spec->chosen[slot.local_rank]));
    }
  });
  rc::prop("only the last host that is used may have slots left", [] {
    const auto w = *wish();
    const Plan plan = *make_plan(w.hosts, w.np, 0);
    const auto used = plan.hosts();
    for (std::size_t i = 0; i < used.size(); ++i) RC_ASSERT(used[i] == w.hosts[i].name);
    const auto on_host = grouped(plan, [](const Slot& s) { return s.host; });
    for (std::size_t i = 0; i + 1 < used.size(); ++i)
      RC_ASSERT(static_cast<int>(on_host.at(used[i]).size()) == w.hosts[i].slots);
  });
  rc::prop("cross ranks count the workers of one local rank, host after host", [] {
    const auto w = *wish();
    const Plan plan = *make_plan(w.hosts, w.np, 0);
    for (const auto& [local, slots] : grouped(plan, [](const Slot& s) { return s.local_rank; }))
      for (int cross = 0; cross < static_cast<int>(slots.size()); ++cross) {
        RC_ASSERT(slots[cross].cross_rank == cross);
        RC_ASSERT(slots[cross].cross_size == static_cast<int>(slots.size()));
      }
  });
}

TEST_CASE("the difference of two plans") {
  const Plan before = plan_of({{"a", 2}, {"b", 2}}, 4);
  SECTION("a host that is gone takes its workers with it") {
    CHECK(diff(before, plan_of({{"a", 2}}, 2)) ==
          Diff{.start = {}, .keep = {0, 1}, .stop = {2, 3}});
  }
  SECTION("a host that comes last starts what it has room for") {
    CHECK(diff(before, plan_of({{"a", 2}, {"b", 2}, {"c", 1}}, 5)) ==
          Diff{.start = {4}, .keep = {0, 1, 2, 3}, .stop = {}});
  }
  SECTION("a rank that moves is stopped here and started there") {
    CHECK(diff(before, plan_of({{"b", 2}, {"a", 2}}, 4)) ==
          Diff{.start = {0, 1, 2, 3}, .keep = {}, .stop = {0, 1, 2, 3}});
  }
  SECTION("a worker whose slot is another one now is started anew") {
    CHECK(diff(before, plan_of({{"a", 2, "", {0, 3}}, {"b", 2}}, 4)) ==
          Diff{.start = {1}, .keep = {0, 2, 3}, .stop = {1}});
  }
  SECTION("so is one that has another local rank, though its slot is the same") {
    const Plan one = plan_of({{"a", 1}, {"b", 2}}, 3);
    const Plan other = plan_of({{"a", 2}, {"b", 1, "", {1}}}, 3);
    CHECK(one.slots[2].index == other.slots[2].index);
    CHECK(diff(one, other) == Diff{.start = {1, 2}, .keep = {0}, .stop = {1, 2}});
  }
  SECTION("from nothing, everyone is started") {
    CHECK(diff(Plan{}, before) == Diff{.start = {0, 1, 2, 3}, .keep = {}, .stop = {}});
  }
}

TEST_CASE("a difference leads from the one plan to the other") {
  rc::prop("from a plan to itself nothing is to be done", [] {
    const auto w = *wish();
    const Plan plan = *make_plan(w.hosts, w.np, 0);
    RC_ASSERT((diff(plan, plan) == Diff{.start = {}, .keep = all_of(plan), .stop = {}}));
  });
  rc::prop("what is kept and what is started make the next plan; what is not kept is stopped", [] {
    const auto from = *wish(), to = *wish();
    const Plan now = *make_plan(from.hosts, from.np, 0), next = *make_plan(to.hosts, to.np, 1);
    const Diff d = diff(now, next);

    auto result = places(now, d.keep);
    result.merge(places(next, d.start));
    RC_ASSERT(result == places(next, all_of(next)));

    Ranks accounted = d.keep;
    accounted.insert(accounted.end(), d.stop.begin(), d.stop.end());
    std::sort(accounted.begin(), accounted.end());
    RC_ASSERT(accounted == all_of(now));
  });
}

}  // namespace corro::launcher
