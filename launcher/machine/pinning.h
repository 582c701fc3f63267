#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/machine/gpus.h"

// Which worker gets which GPU.  Pure.
//
// A host shows its workers a list of devices: what CUDA_VISIBLE_DEVICES names there, else all GPUs,
// and instead of a GPU that is split (MIG) its instances.  Slot i is given entry i, in the words of
// the list, which CUDA understands as before.
namespace corro::launcher {

// indexed    a worker sees all the job's devices of its host, in order, for scripts that say
//            set_device(local_rank); CORRO_GPU is its own among them
// exclusive  a worker sees its own device only
// none       nothing is set
//
// Of instances a process can use one, so where there are any, indexed is exclusive.
enum class GpuPinning { indexed, exclusive, none };

// A worker that is to run on a host, and in which of the host's slots.
struct Seat {
  int rank = 0, slot = 0;
  bool operator==(const Seat&) const = default;
};

struct HostGpus {
  std::string host;
  std::vector<Gpu> gpus;
  std::optional<std::string> mask;  // CUDA_VISIBLE_DEVICES as the workers would have it
  bool pci_order = false;           // CUDA_DEVICE_ORDER=PCI_BUS_ID, likewise
  std::vector<Seat> seats;
};

struct WorkerGpu {
  int rank = 0;
  std::vector<std::pair<std::string, std::string>> variables;  // to set
  std::string device;  // as CUDA_VISIBLE_DEVICES calls it; empty: it has none
  // Of the GPU that this is, or is a part of; -1 if not known.  CUDA counts the fastest GPU first,
  // the driver by bus: on a host with different GPUs and without pci_order a number says little.
  int gpu = -1;  // Gpu::index
  int numa_node = -1;
  bool operator==(const WorkerGpu&) const = default;
};

struct PinningTrouble {
  bool fatal = false;  // the job must not start
  std::string text;
  bool operator==(const PinningTrouble&) const = default;
};

struct Pinning {
  std::vector<WorkerGpu> workers;  // as the seats
  std::vector<PinningTrouble> troubles;
  bool operator==(const Pinning&) const = default;
};

// Says what is wrong: a mask that names what is not there, workers without a GPU of their own,
// GPUs that are held by others.
Pinning pin_gpus(const HostGpus&, GpuPinning);

// How many devices a host shows; none if its mask is wrong.
int count_devices(const HostGpus&);

// Over all hosts of a job: those that have no GPU to show while others have.
std::vector<PinningTrouble> compare_hosts(const std::vector<HostGpus>&, GpuPinning);

}  // namespace corro::launcher
