#include "launcher/machine/topology.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace corro::launcher {

namespace {

// The functions of hwloc that we call.  It is not linked: horovodrun runs where there is none.
struct Hwloc {
#define CORRO_HWLOC_FUNCTIONS(each) \
  each(get_api_version);            \
  each(topology_init);              \
  each(topology_load);              \
  each(topology_destroy);           \
  each(topology_is_thissystem);     \
  each(get_type_depth);             \
  each(get_nbobjs_by_depth);        \
  each(get_obj_by_depth);           \
  each(bitmap_next)
#define CORRO_DECLARE(name) decltype(&::hwloc_##name) name = nullptr
  CORRO_HWLOC_FUNCTIONS(CORRO_DECLARE);
#undef CORRO_DECLARE
};

Result<Hwloc> open_hwloc(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error(Errc::not_found, fmt::format("{} is not installed (on Debian: apt install "
                                              "libhwloc15)",
                                              path));
  Hwloc hwloc;
  bool complete = true;
#define CORRO_LOOK_UP(name)                                                              \
  hwloc.name = reinterpret_cast<decltype(hwloc.name)>(::dlsym(library, "hwloc_" #name)); \
  complete = complete && hwloc.name
  CORRO_HWLOC_FUNCTIONS(CORRO_LOOK_UP);
#undef CORRO_LOOK_UP
#undef CORRO_HWLOC_FUNCTIONS
  // The layout of its objects is the same in all of 2.x.
  if (!complete || hwloc.get_api_version() >> 16 != HWLOC_API_VERSION >> 16)
    return Error(Errc::unsupported, fmt::format("{} is not hwloc 2", path));
  return hwloc;
}

Cpus numbers_in(const Hwloc& hwloc, hwloc_const_bitmap_t set) {
  Cpus out;
  for (int i = hwloc.bitmap_next(set, -1); i >= 0; i = hwloc.bitmap_next(set, i)) out.push_back(i);
  return out;
}

// Some virtual machines do not say what is a core; there each hardware thread counts as one.
std::vector<Core> cores_of(const Hwloc& hwloc, hwloc_topology_t topology) {
  int depth = hwloc.get_type_depth(topology, HWLOC_OBJ_CORE);
  if (depth < 0) depth = hwloc.get_type_depth(topology, HWLOC_OBJ_PU);
  std::vector<Core> cores;
  for (unsigned i = 0; i < hwloc.get_nbobjs_by_depth(topology, depth); ++i) {
    const hwloc_obj* object = hwloc.get_obj_by_depth(topology, depth, i);
    const int node = hwloc.bitmap_next(object->nodeset, -1);
    cores.push_back({numbers_in(hwloc, object->cpuset), std::max(node, 0)});
  }
  return cores;
}

// A kernel may count more CPUs than a cpu_set_t has room for.
Result<Cpus> own_affinity() {
  constexpr std::size_t kMostBytes = 1 << 16;
  for (std::size_t bytes = sizeof(cpu_set_t); bytes <= kMostBytes; bytes *= 2) {
    std::vector<cpu_set_t> set(bytes / sizeof(cpu_set_t));
    if (::sched_getaffinity(0, bytes, set.data()) == 0) {
      Cpus cpus;
      for (std::size_t i = 0; i < 8 * bytes; ++i)
        if (CPU_ISSET_S(i, bytes, set.data())) cpus.push_back(static_cast<std::int32_t>(i));
      return cpus;
    }
    if (errno != EINVAL) break;
  }
  return Error::from_errno("asking which CPUs may be used");
}

Cpus all_of(const std::vector<Core>& cores) {
  Cpus all;
  for (const Core& core : cores) all.insert(all.end(), core.cpus.begin(), core.cpus.end());
  std::sort(all.begin(), all.end());
  return all;
}

Result<Topology> read(const std::string& library) {
  const auto hwloc = open_hwloc(library);
  if (!hwloc) return hwloc.error();
  hwloc_topology_t raw = nullptr;
  if (hwloc->topology_init(&raw) != 0) return Error::from_errno("hwloc_topology_init");
  const std::unique_ptr<hwloc_topology, decltype(hwloc->topology_destroy)> owned(
      raw, hwloc->topology_destroy);
  if (hwloc->topology_load(raw) != 0) return Error::from_errno("hwloc_topology_load");

  Topology topology;
  topology.cores = cores_of(*hwloc, raw);
  auto allowed =
      hwloc->topology_is_thissystem(raw) ? own_affinity() : Result<Cpus>(all_of(topology.cores));
  if (!allowed) return allowed.error();
  topology.allowed = std::move(*allowed);
  return topology;
}

}  // namespace

Result<Topology> read_topology(const std::string& library) {
  auto topology = read(library);
  if (!topology) return std::move(topology.error()).during("looking at the cores of this machine");
  return topology;
}

}  // namespace corro::launcher
