#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/result.h"
#include "base/time.h"

namespace corro::launcher {

// A process that computes on a GPU.
struct GpuHolder {
  std::int32_t pid = 0;
  std::string user;     // empty if not known: it may live in another container
  std::string program;  // as the kernel has it, 15 characters at most
  std::uint64_t memory_bytes = 0;

  CORRO_FIELDS(pid, user, program, memory_bytes)
  bool operator==(const GpuHolder&) const = default;
};

// A part of a GPU that is like one (MIG).
struct GpuInstance {
  std::string uuid;  // "MIG-…"
  std::int32_t gpu_instance = 0, compute_instance = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<GpuHolder> holders;

  CORRO_FIELDS(uuid, gpu_instance, compute_instance, memory_bytes, holders)
  bool operator==(const GpuInstance&) const = default;
};

struct Gpu {
  std::int32_t index = 0;  // as the driver counts, those too that we may not use
  std::string name;        // "NVIDIA A100-SXM4-40GB"
  std::string uuid;        // "GPU-…"
  std::string pci_bus_id;  // "0000:3b:00.0", as in /sys
  std::uint64_t memory_bytes = 0;
  std::int32_t numa_node = -1;  // -1: not known, or there is only one
  std::vector<GpuHolder> holders;
  bool is_split = false;  // only its instances can be used
  std::vector<GpuInstance> instances;

  CORRO_FIELDS(index, name, uuid, pci_bus_id, memory_bytes, numa_node, holders, is_split, instances)
  bool operator==(const Gpu&) const = default;
};

// Where to look; a test has its own.
struct GpuSource {
  std::string library = "libnvidia-ml.so.1";
  std::string root;  // in front of /sys and /proc
  Duration patience = std::chrono::seconds(3);
};

// The GPUs that this process may use, in the driver's order.  None if there is no driver or no
// library of it; an error if the driver answers with one, or not in time.  Waits, and starts a
// child meanwhile, which it reaps itself.
Result<std::vector<Gpu>> find_gpus(const GpuSource& = {});

}  // namespace corro::launcher
