#pragma once

#include <cstdint>

// The part of NVIDIA's management library that we call, declared anew from its documentation
// ("NVML API Reference").  Its ABI only grows, so this fits every driver since 2013; whatever came
// later is looked for by name and may be missing.
namespace corro::launcher::nvml {

using Device = struct OpaqueDevice*;

using Return = int;
constexpr Return kSuccess = 0;
constexpr Return kNotSupported = 3;
constexpr Return kNoPermission = 4;
constexpr Return kNotFound = 6;
constexpr Return kTooSmall = 7;
constexpr Return kDriverNotLoaded = 9;
constexpr Return kNoSuchFunction = 13;
constexpr Return kNoGpus = 28;

constexpr unsigned kTextBytes = 96;  // room for any name or UUID
constexpr unsigned kMigEnabled = 1;
constexpr unsigned long long kUnknownMemory = ~0ULL;

struct PciInfo {
  char short_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];  // "00000000:3B:00.0"
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {
  unsigned long long total, free, used;
};

struct ProcessOld {
  unsigned pid;
  unsigned long long memory;
};
static_assert(sizeof(ProcessOld) == 16);

struct Process {  // since _v2
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(Process) == 24);

// By the names of the functions, without "nvml" and version.
using Init = Return();
using Shutdown = Return();
using ErrorString = const char*(Return);
using DeviceGetCount = Return(unsigned*);
using DeviceGetHandleByIndex = Return(unsigned, Device*);
using DeviceGetText = Return(Device, char*, unsigned);  // Name, UUID
using DeviceGetPciInfo = Return(Device, PciInfo*);
using DeviceGetMemoryInfo = Return(Device, Memory*);
using DeviceGetProcesses = Return(Device, unsigned*, Process*);
using DeviceGetProcessesOld = Return(Device, unsigned*, ProcessOld*);
using DeviceGetMigMode = Return(Device, unsigned* now, unsigned* after_reset);
using DeviceGetNumber = Return(Device, unsigned*);  // MaxMigDeviceCount, the ids of instances
using DeviceGetMigHandle = Return(Device, unsigned, Device*);

}  // namespace corro::launcher::nvml
