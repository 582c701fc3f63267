#include "launcher/job/placing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace corro::launcher {

namespace {

std::optional<std::string> value_of(const std::vector<Variable>& variables, std::string_view name) {
  for (const auto& [each, value] : variables)
    if (each == name) return value;
  return std::nullopt;
}

HostGpus shown_by(const std::string& host, const std::vector<Gpu>& gpus,
                  const std::vector<Variable>& variables) {
  return {host,
          gpus,
          value_of(variables, "CUDA_VISIBLE_DEVICES"),
          value_of(variables, "CUDA_DEVICE_ORDER") == "PCI_BUS_ID",
          {}};
}

// The hosts with their GPUs and their workers' slots, in the plan's order.
std::vector<HostGpus> hosts_with_gpus(const JobSpec& spec, const Plan& plan,
                                      const std::map<std::string, agent::Facts>& facts) {
  const auto variables = user_variables(spec.environment);
  std::vector<HostGpus> hosts;
  for (const Slot& slot : plan.slots) {
    if (slot.local_rank == 0)
      hosts.push_back(shown_by(slot.host, facts.at(slot.host).gpus, variables));
    hosts.back().seats.push_back({slot.rank, slot.index});
  }
  return hosts;
}

class Placer {
 public:
  Placer(const JobSpec& spec, const Plan& plan, const std::map<std::string, agent::Facts>& facts)
      : spec_(spec), plan_(plan), facts_(facts) {
    out_.workers.resize(plan.slots.size());
  }

  Result<Placing, Unfit> place() {
    const auto hosts = hosts_with_gpus(spec_, plan_, facts_);
    const auto pinning = spec_.placement.gpu_pinning;
    if (auto why = take("", compare_hosts(hosts, pinning))) return *why;
    for (const HostGpus& host : hosts) {
      for (const std::string& trouble : facts_.at(host.host).troubles)
        out_.warnings.push_back(fmt::format("host {}: {}", host.host, trouble));
      const Pinning pinned = pin_gpus(host, pinning);
      if (auto why = take(host.host, pinned.troubles)) return *why;
      if (auto why = bind(host.host, pinned)) return *why;
      for (const WorkerGpu& worker : pinned.workers)
        out_.workers[worker.rank].gpu = worker.variables;
    }
    out_.rows = binding_rows(reports_);
    return std::move(out_);
  }

 private:
  std::optional<Unfit> take(const std::string& host, const std::vector<PinningTrouble>& troubles) {
    for (const PinningTrouble& trouble : troubles) {
      if (trouble.fatal) return Unfit{host, trouble.text};
      out_.warnings.push_back(trouble.text);
    }
    return std::nullopt;
  }

  std::optional<Unfit> bind(const std::string& host, const Pinning& pinned) {
    const auto bind_to = spec_.placement.bind_to;
    const auto& topology = facts_.at(host).topology;
    if (bind_to != BindTo::none && !topology)
      return Unfit{host, fmt::format("the workers of host {} cannot be bound to CPUs: {}", host,
                                     fmt::join(facts_.at(host).troubles, "; "))};
    std::vector<int> numa_nodes;
    for (const WorkerGpu& worker : pinned.workers) numa_nodes.push_back(worker.numa_node);
    Bindings bindings{std::vector<Cpus>(pinned.workers.size()), {}};
    if (bind_to != BindTo::none) {
      auto decided = bind_workers(host, *topology, bind_to, numa_nodes);
      if (!decided) return Unfit{host, decided.error().text()};
      bindings = std::move(*decided);
    }
    out_.warnings.insert(out_.warnings.end(), bindings.notes.begin(), bindings.notes.end());
    for (std::size_t i = 0; i < pinned.workers.size(); ++i) {
      const WorkerGpu& worker = pinned.workers[i];
      const Cpus& cpus = bindings.workers[i];
      out_.workers[worker.rank].cpus = cpus;
      reports_.push_back({worker.rank, host, cpus,
                          topology ? numa_nodes_of(*topology, cpus) : std::vector<int>(),
                          worker.device});
    }
    return std::nullopt;
  }

  const JobSpec& spec_;
  const Plan& plan_;
  const std::map<std::string, agent::Facts>& facts_;
  Placing out_;
  std::vector<BindingReport> reports_;
};

}  // namespace

Result<Placing, Unfit> place_workers(const JobSpec& spec, const Plan& plan,
                                     const std::map<std::string, agent::Facts>& facts) {
  return Placer(spec, plan, facts).place();
}

int natural_slots(const JobSpec& spec, const std::string& host, const std::vector<Gpu>& gpus) {
  return std::max(1, count_devices(shown_by(host, gpus, user_variables(spec.environment))));
}

agent::Opener opener_for(const HostSpec& host, const Placement& placement, const Key& key) {
  return {host.name, Bytes(key.bytes.begin(), key.bytes.end()), placement.interfaces, host.address};
}

}  // namespace corro::launcher
