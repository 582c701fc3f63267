#include "launcher/machine/binding.h"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "base/text.h"
#include "tests/support/print_error.h"

namespace corro::launcher {

namespace {

using Strings = std::vector<std::string>;
using Nodes = std::vector<int>;

// Threads of a core are neighbours: 0 and 1 are the first core.
Topology machine(int nodes, int cores, int threads) {
  Topology topology;
  for (int node = 0; node < nodes; ++node)
    for (int core = 0; core < cores; ++core) {
      Core& it = topology.cores.emplace_back();
      it.numa_node = node;
      for (int thread = 0; thread < threads; ++thread) {
        const int cpu = static_cast<int>(topology.allowed.size());
        it.cpus.push_back(cpu);
        topology.allowed.push_back(cpu);
      }
    }
  return topology;
}

Bindings bound(const Topology& topology, BindTo to, const Nodes& numa_of_worker) {
  const auto bindings = bind_workers("a", topology, to, numa_of_worker);
  if (!bindings) FAIL(bindings.error().text());
  return *bindings;
}

Strings texts(const Bindings& bindings) {
  Strings out;
  for (const Cpus& cpus : bindings.workers) out.push_back(number_ranges(cpus));
  return out;
}

Strings cpus(const Topology& topology, BindTo to, const Nodes& numa_of_worker) {
  const Bindings bindings = bound(topology, to, numa_of_worker);
  CHECK(bindings.notes.empty());
  return texts(bindings);
}

}  // namespace

TEST_CASE("workers that are not bound have no CPUs, on any machine") {
  CHECK(bound({}, BindTo::none, {-1, 0}) == Bindings{.workers = {{}, {}}, .notes = {}});
  CHECK(bound(machine(1, 1, 1), BindTo::core, {}) == Bindings{});
}

TEST_CASE("each worker has cores of its own, as many as everybody else") {
  const auto to = BindTo::core;
  CHECK(cpus(machine(1, 4, 1), to, {-1}) == Strings{"0-3"});
  CHECK(cpus(machine(1, 4, 2), to, {-1, -1}) == Strings{"0-3", "4-7"});
  CHECK(cpus(machine(1, 5, 1), to, {-1, -1}) == Strings{"0-1", "2-3"});  // one stays free
  CHECK(cpus(machine(1, 2, 2), to, {-1, -1}) == Strings{"0-1", "2-3"});

  Topology linux_way{.cores = {{{0, 4}, 0}, {{1, 5}, 0}, {{2, 6}, 0}, {{3, 7}, 0}},
                     .allowed = {0, 1, 2, 3, 4, 5, 6, 7}};
  CHECK(cpus(linux_way, to, {-1, -1}) == Strings{"0-1,4-5", "2-3,6-7"});
}

TEST_CASE("cores are near the GPU") {
  const auto to = BindTo::core;
  const Topology two = machine(2, 4, 1);
  CHECK(cpus(two, to, {1, 0}) == Strings{"4-7", "0-3"});
  CHECK(cpus(two, to, {1, 1, 0, 0}) == Strings{"4-5", "6-7", "0-1", "2-3"});
  // Who has no GPU takes what is left.
  CHECK(cpus(two, to, {-1, 0, -1, 0}) == Strings{"4-5", "0-1", "6-7", "2-3"});
  // What a node has not, another one gives.
  CHECK(cpus(two, to, {0, 0, 0, 0}) == Strings{"0-1", "2-3", "4-5", "6-7"});
  CHECK(cpus(two, to, {1}) == Strings{"0-7"});
}

TEST_CASE("a worker is kept on one node where that is possible") {
  // 3 cores each: two workers of 2, one of them must not straddle.
  CHECK(cpus(machine(2, 3, 1), BindTo::core, {-1, -1, -1}) == Strings{"0-1", "3-4", "2,5"});
}

TEST_CASE("each worker has the NUMA node of its GPU, else nodes are taken in turn") {
  const auto to = BindTo::numa;
  const Topology two = machine(2, 2, 2);
  CHECK(cpus(two, to, {1, 0, 1}) == Strings{"4-7", "0-3", "4-7"});
  CHECK(cpus(two, to, {-1, -1, -1, -1}) == Strings{"0-3", "0-3", "4-7", "4-7"});
  CHECK(cpus(two, to, {-1}) == Strings{"0-3"});
  CHECK(cpus(machine(4, 1, 1), to, {-1, -1}) == Strings{"0", "2"});
  CHECK(cpus(two, to, {-1, -1, 0, -1}) == Strings{"0-3", "0-3", "0-3", "4-7"});
}

TEST_CASE("nobody runs where we may not") {
  Topology some = machine(2, 2, 2);
  some.allowed = {1, 2, 3, 6};
  CHECK(cpus(some, BindTo::core, {-1, -1, -1}) == Strings{"1", "2-3", "6"});
  CHECK(cpus(some, BindTo::numa, {1, 0}) == Strings{"6", "1-3"});

  some.allowed = {0, 1};
  const Bindings elsewhere = bound(some, BindTo::numa, {1, 1});
  CHECK(texts(elsewhere) == Strings{"0-1", "0-1"});
  CHECK(elsewhere.notes ==
        Strings{"a: a GPU is near NUMA node 1, of which no CPU may be used: its worker runs "
                "elsewhere"});

  some.allowed = {64};
  CHECK(bind_workers("a", some, BindTo::core, {-1}).error() ==
        Error(Errc::unsupported,
              "a: none of the CPUs that may be used (64) is a core that hwloc knows"));
}

TEST_CASE("more workers than cores share them, and that is said") {
  const Bindings five = bound(machine(2, 1, 2), BindTo::core, {-1, -1, -1, -1, -1});
  CHECK(texts(five) == Strings{"0-1", "2-3", "0-1", "2-3", "0-1"});
  CHECK(five.notes == Strings{"a: 5 workers share 2 cores"});

  const Bindings near = bound(machine(2, 1, 2), BindTo::core, {1, 1, 0});
  CHECK(texts(near) == Strings{"2-3", "2-3", "0-1"});
  // No core has to serve three while another serves one.
  CHECK(texts(bound(machine(2, 1, 2), BindTo::core, {1, 1, 1})) == Strings{"2-3", "2-3", "0-1"});
  CHECK(bound(machine(1, 1, 1), BindTo::core, {-1, -1}).notes ==
        Strings{"a: 2 workers share 1 core"});
}

namespace {

struct Wish {
  Topology topology;
  Nodes numa_of_worker;
};

void showValue(const Wish& wish, std::ostream& to) {
  for (const Core& core : wish.topology.cores)
    to << "[" << number_ranges(core.cpus) << " @" << core.numa_node << "] ";
  to << "allowed " << number_ranges(wish.topology.allowed) << "; workers near";
  for (const int node : wish.numa_of_worker) to << " " << node;
}

rc::Gen<Wish> wish() {
  return rc::gen::exec([] {
    Wish wish;
    wish.topology =
        machine(*rc::gen::inRange(1, 5), *rc::gen::inRange(1, 9), *rc::gen::inRange(1, 3));
    // Some are taken away, but never all.
    Cpus& allowed = wish.topology.allowed;
    const Cpus all = allowed;
    allowed = {*rc::gen::elementOf(all)};
    for (const int cpu : all)
      if (cpu != allowed[0] && *rc::gen::inRange(0, 4) > 0) allowed.push_back(cpu);
    std::sort(allowed.begin(), allowed.end());
    const int workers = *rc::gen::inRange(1, 20);
    for (int i = 0; i < workers; ++i) wish.numa_of_worker.push_back(*rc::gen::inRange(-1, 5));
    return wish;
  });
}

// For each core of which we may use something, how many workers have it.
std::map<std::size_t, int> load_of(const Wish& wish, const Bindings& bindings) {
  std::map<std::size_t, int> load;
  for (std::size_t i = 0; i < wish.topology.cores.size(); ++i) {
    const auto touches = [core = Cpus(wish.topology.cores[i].cpus)](const Cpus& set) {
      return std::find_first_of(set.begin(), set.end(), core.begin(), core.end()) != set.end();
    };
    if (touches(wish.topology.allowed))
      load[i] = static_cast<int>(
          std::count_if(bindings.workers.begin(), bindings.workers.end(), touches));
  }
  return load;
}

}  // namespace

TEST_CASE("bindings keep their promises on any machine") {
  rc::prop("every worker has a CPU, only allowed ones, and the same each time", [] {
    const auto w = *wish();
    for (const auto to : {BindTo::core, BindTo::numa}) {
      const auto bindings = *bind_workers("a", w.topology, to, w.numa_of_worker);
      RC_ASSERT(bindings == *bind_workers("a", w.topology, to, w.numa_of_worker));
      RC_ASSERT(bindings.workers.size() == w.numa_of_worker.size());
      for (const Cpus& cpus : bindings.workers) {
        RC_ASSERT_FALSE(cpus.empty());
        RC_ASSERT(std::is_sorted(cpus.begin(), cpus.end()));
        RC_ASSERT(std::includes(w.topology.allowed.begin(), w.topology.allowed.end(), cpus.begin(),
                                cpus.end()));
      }
    }
  });
  rc::prop("cores belong to one worker if there are enough, else loads differ by one", [] {
    const auto w = *wish();
    const auto bindings = *bind_workers("a", w.topology, BindTo::core, w.numa_of_worker);
    const auto load = load_of(w, bindings);
    const std::size_t workers = bindings.workers.size();
    const std::size_t most = (workers + load.size() - 1) / load.size();
    std::size_t dealt = 0;
    for (const auto& [core, n] : load) {
      RC_ASSERT(static_cast<std::size_t>(n) <= most);
      dealt += static_cast<std::size_t>(n);
    }
    RC_ASSERT(dealt == std::max(workers, load.size() / workers * workers));
  });
  rc::prop("by core, a worker is near its GPU if its node has room for all who want it", [] {
    const auto w = *wish();
    const auto bindings = *bind_workers("a", w.topology, BindTo::core, w.numa_of_worker);
    const auto load = load_of(w, bindings);
    const std::size_t workers = bindings.workers.size();
    RC_PRE(workers <= load.size());
    const std::size_t share = load.size() / workers;
    std::map<int, std::size_t> room, wanted;
    for (const auto& [core, n] : load) ++room[w.topology.cores[core].numa_node];
    for (const int node : w.numa_of_worker) wanted[node] += share;
    for (std::size_t i = 0; i < workers; ++i) {
      const int node = w.numa_of_worker[i];
      if (node < 0 || room[node] < wanted[node]) continue;
      RC_ASSERT((numa_nodes_of(w.topology, bindings.workers[i]) == Nodes{node}));
    }
  });
  rc::prop("by node, a worker has all of one node, that of its GPU if it may", [] {
    const auto w = *wish();
    const auto bindings = *bind_workers("a", w.topology, BindTo::numa, w.numa_of_worker);
    const Nodes usable = numa_nodes_of(w.topology, w.topology.allowed);
    for (std::size_t i = 0; i < bindings.workers.size(); ++i) {
      const Nodes nodes = numa_nodes_of(w.topology, bindings.workers[i]);
      RC_ASSERT(nodes.size() == 1u);
      const int wanted = w.numa_of_worker[i];
      if (std::count(usable.begin(), usable.end(), wanted)) RC_ASSERT(nodes[0] == wanted);
    }
  });
}

TEST_CASE("bindings are reported as a table") {
  const Topology two = machine(2, 4, 1);
  CHECK(binding_rows({{.rank = 0, .host = "a", .cpus = {0, 1, 2, 3}, .numa_nodes = {0}, .gpu = "0"},
                      {.rank = 1,
                       .host = "b",
                       .cpus = {0, 3, 4},
                       .numa_nodes = numa_nodes_of(two, {0, 3, 4}),
                       .gpu = "GPU-a1"},
                      {.rank = 2, .host = "b", .cpus = {}, .numa_nodes = {}, .gpu = ""}}) ==
        std::vector<Strings>{{"rank", "host", "cpus", "numa", "gpu"},
                             {"0", "a", "0-3", "0", "0"},
                             {"1", "b", "0,3-4", "0-1", "GPU-a1"},
                             {"2", "b", "-", "-", "-"}});
}

}  // namespace corro::launcher
