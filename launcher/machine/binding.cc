#include "launcher/machine/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"

namespace corro::launcher {

namespace {

using Cores = std::vector<Core>;

// What may be used, neighbours side by side.
Cores usable_cores(const Topology& topology) {
  const std::set<std::int32_t> allowed(topology.allowed.begin(), topology.allowed.end());
  Cores cores = topology.cores;
  for (Core& core : cores)
    std::erase_if(core.cpus, [&](std::int32_t cpu) { return !allowed.contains(cpu); });
  std::erase_if(cores, [](const Core& core) { return core.cpus.empty(); });
  std::sort(cores.begin(), cores.end(), [](const Core& a, const Core& b) {
    return std::tie(a.numa_node, a.cpus) < std::tie(b.numa_node, b.cpus);
  });
  return cores;
}

std::map<int, Cpus> cpus_by_node(const Cores& cores) {
  std::map<int, Cpus> nodes;
  for (const Core& core : cores) {
    Cpus& cpus = nodes[core.numa_node];
    cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  }
  for (auto& [node, cpus] : nodes) std::sort(cpus.begin(), cpus.end());
  return nodes;
}

// Deals cores out, each to one worker, until each worker has its share.
class Dealer {
 public:
  Dealer(const Cores& cores, std::size_t workers)
      : cores_(cores), taken_(cores.size()), hands_(workers), share_(cores.size() / workers) {}

  void deal_from(int node, std::size_t worker) {
    for (std::size_t i = 0; i < cores_.size(); ++i)
      if (cores_[i].numa_node == node) deal(i, worker);
  }

  // From one node if there is one with enough, else whatever is left.
  void deal_rest(std::size_t worker) {
    if (const auto node = first_node_with(share_ - cores_in_hand(worker))) deal_from(*node, worker);
    for (std::size_t i = 0; i < cores_.size(); ++i) deal(i, worker);
  }

  std::vector<Cpus> hands() const {
    std::vector<Cpus> out;
    for (const auto& hand : hands_) {
      Cpus& cpus = out.emplace_back();
      for (const std::size_t i : hand)
        cpus.insert(cpus.end(), cores_[i].cpus.begin(), cores_[i].cpus.end());
      std::sort(cpus.begin(), cpus.end());
    }
    return out;
  }

 private:
  std::size_t cores_in_hand(std::size_t worker) const { return hands_[worker].size(); }

  void deal(std::size_t core, std::size_t worker) {
    if (taken_[core] || cores_in_hand(worker) == share_) return;
    taken_[core] = true;
    hands_[worker].push_back(core);
  }

  std::optional<int> first_node_with(std::size_t wanted) const {
    std::map<int, std::size_t> free;
    for (std::size_t i = 0; i < cores_.size(); ++i)
      if (!taken_[i] && ++free[cores_[i].numa_node] >= wanted) return cores_[i].numa_node;
    return std::nullopt;
  }

  const Cores& cores_;
  std::vector<bool> taken_;
  std::vector<std::vector<std::size_t>> hands_;  // of each worker
  std::size_t share_;
};

// Those with a GPU choose first.
std::vector<Cpus> cores_for_each(const Cores& cores, const std::vector<int>& numa_of_worker) {
  Dealer dealer(cores, numa_of_worker.size());
  for (std::size_t w = 0; w < numa_of_worker.size(); ++w) dealer.deal_from(numa_of_worker[w], w);
  for (std::size_t w = 0; w < numa_of_worker.size(); ++w) dealer.deal_rest(w);
  return dealer.hands();
}

// One core each, the least used one: near its GPU, as long as no core there has more workers than
// it would have if all were used alike.
std::vector<Cpus> shared_cores(const Cores& cores, const std::vector<int>& numa_of_worker) {
  const std::size_t most = (numa_of_worker.size() + cores.size() - 1) / cores.size();
  std::vector<std::size_t> used(cores.size());
  const auto best = [&](std::optional<int> node) {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < cores.size(); ++i)
      if ((!node || cores[i].numa_node == *node) && used[i] < most &&
          (!found || used[i] < used[*found]))
        found = i;
    return found;
  };
  std::vector<Cpus> out;
  for (const int node : numa_of_worker) {
    const auto near = best(node);
    const std::size_t chosen = near ? *near : *best(std::nullopt);
    ++used[chosen];
    out.push_back(cores[chosen].cpus);
  }
  return out;
}

std::vector<Cpus> nodes_for_each(const Cores& cores, const std::vector<int>& numa_of_worker) {
  const auto nodes = cpus_by_node(cores);
  std::vector<Cpus> out;
  for (std::size_t w = 0; w < numa_of_worker.size(); ++w) {
    const auto near = nodes.find(numa_of_worker[w]);
    const auto in_turn = std::next(
        nodes.begin(), static_cast<std::ptrdiff_t>(w * nodes.size() / numa_of_worker.size()));
    out.push_back(near != nodes.end() ? near->second : in_turn->second);
  }
  return out;
}

// GPUs near which we may not run.
std::vector<std::string> notes_on_nodes(std::string_view host, const Cores& cores,
                                        const std::vector<int>& numa_of_worker) {
  const auto nodes = cpus_by_node(cores);
  std::vector<std::string> notes;
  for (const int node : std::set<int>(numa_of_worker.begin(), numa_of_worker.end()))
    if (node >= 0 && !nodes.contains(node))
      notes.push_back(fmt::format(
          "{}: a GPU is near NUMA node {}, of which no CPU may be used: its worker runs elsewhere",
          host, node));
  return notes;
}

std::string or_dash(std::string text) {
  return text.empty() ? "-" : text;
}

}  // namespace

Result<Bindings> bind_workers(std::string_view host, const Topology& topology, BindTo to,
                              const std::vector<int>& numa_of_worker) {
  Bindings bindings;
  bindings.workers.resize(numa_of_worker.size());
  if (to == BindTo::none || numa_of_worker.empty()) return bindings;
  const Cores cores = usable_cores(topology);
  if (cores.empty())
    return Error(Errc::unsupported, fmt::format("{}: none of the CPUs that may be used ({}) is a "
                                                "core that hwloc knows",
                                                host, or_dash(number_ranges(topology.allowed))));

  bindings.notes = notes_on_nodes(host, cores, numa_of_worker);
  if (to == BindTo::numa) {
    bindings.workers = nodes_for_each(cores, numa_of_worker);
  } else if (numa_of_worker.size() <= cores.size()) {
    bindings.workers = cores_for_each(cores, numa_of_worker);
  } else {
    bindings.workers = shared_cores(cores, numa_of_worker);
    bindings.notes.push_back(fmt::format("{}: {} workers share {} core{}", host,
                                         numa_of_worker.size(), cores.size(),
                                         cores.size() == 1 ? "" : "s"));
  }
  return bindings;
}

std::vector<int> numa_nodes_of(const Topology& topology, const Cpus& cpus) {
  std::set<int> nodes;
  for (const Core& core : topology.cores)
    if (std::find_first_of(core.cpus.begin(), core.cpus.end(), cpus.begin(), cpus.end()) !=
        core.cpus.end())
      nodes.insert(core.numa_node);
  return {nodes.begin(), nodes.end()};
}

std::vector<std::vector<std::string>> binding_rows(const std::vector<BindingReport>& reports) {
  std::vector<std::vector<std::string>> rows = {{"rank", "host", "cpus", "numa", "gpu"}};
  for (const BindingReport& report : reports)
    rows.push_back({std::to_string(report.rank), report.host, or_dash(number_ranges(report.cpus)),
                    or_dash(number_ranges(report.numa_nodes)), or_dash(report.gpu)});
  return rows;
}

}  // namespace corro::launcher
