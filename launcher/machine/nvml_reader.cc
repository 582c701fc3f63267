#include "launcher/machine/nvml_reader.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

#include "base/text.h"
#include "launcher/machine/nvml.h"

namespace corro::launcher {

namespace {

using nvml::Return;

struct Handle {
  nvml::Device device;
  std::string name;  // for messages: "GPU 3"
};

std::string first_line_of(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// The library, from its first call to its last.  A function that this version of it does not have
// answers so, like one that this GPU does not support.
class Nvml {
 public:
  static Result<std::optional<Nvml>> open(const std::string& path) {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return std::optional<Nvml>();
    Nvml nvml(library);
    const Return answer = nvml.call<nvml::Init>("nvmlInit_v2");
    if (answer == nvml::kDriverNotLoaded || answer == nvml::kNoGpus) return std::optional<Nvml>();
    if (answer != nvml::kSuccess) return nvml.error(answer, "nvmlInit_v2");
    return std::optional<Nvml>(nvml);
  }

  template <class Function, class... Arguments>
  Return call(const char* name, Arguments... arguments) const {
    auto* function = reinterpret_cast<Function*>(::dlsym(library_, name));
    return function ? function(arguments...) : nvml::kNoSuchFunction;
  }

  Error error(Return answer, std::string_view doing) const {
    auto* explain = reinterpret_cast<nvml::ErrorString*>(::dlsym(library_, "nvmlErrorString"));
    const char* text = explain ? explain(answer) : nullptr;
    return Error(Errc::io, fmt::format("{}: {} ({})", doing, text ? text : "error", answer));
  }

  // For what may be unknown: an old driver, a GPU without it, or not for our eyes.
  Result<bool> known(Return answer, const Handle& gpu, const char* function) const {
    if (answer == nvml::kSuccess) return true;
    for (const Return why : {nvml::kNotSupported, nvml::kNoPermission, nvml::kNoSuchFunction})
      if (answer == why) return false;
    return error(answer, fmt::format("{}: {}", gpu.name, function));
  }

 private:
  explicit Nvml(void* library) : library_(library) {}

  // Never closed: the process ends soon.
  void* library_;
};

Result<std::string> text(const Nvml& nvml, const Handle& gpu, const char* function) {
  std::array<char, nvml::kTextBytes> buffer{};
  const auto known = nvml.known(
      nvml.call<nvml::DeviceGetText>(function, gpu.device, buffer.data(), nvml::kTextBytes), gpu,
      function);
  if (!known) return known.error();
  return std::string(*known ? buffer.data() : "");
}

Result<std::uint64_t> memory(const Nvml& nvml, const Handle& gpu) {
  const char* function = "nvmlDeviceGetMemoryInfo";
  nvml::Memory memory{};
  const auto known = nvml.known(nvml.call<nvml::DeviceGetMemoryInfo>(function, gpu.device, &memory),
                                gpu, function);
  if (!known) return known.error();
  return static_cast<std::uint64_t>(*known ? memory.total : 0);
}

std::string user_of(const std::string& process) {
  struct stat info;
  if (::stat(process.c_str(), &info) != 0) return "";
  const passwd* entry = ::getpwuid(info.st_uid);
  return entry ? entry->pw_name : fmt::format("uid {}", info.st_uid);
}

GpuHolder holder_of(unsigned pid, unsigned long long memory, const std::string& root) {
  const std::string process = fmt::format("{}/proc/{}", root, pid);
  return {.pid = static_cast<std::int32_t>(pid),
          .user = user_of(process),
          .program = first_line_of(process + "/comm"),
          .memory_bytes = memory == nvml::kUnknownMemory ? 0 : memory};
}

template <class Function, class Process>
Return processes(const Nvml& nvml, const Handle& gpu, const char* function, const std::string& root,
                 std::vector<GpuHolder>& holders) {
  // Processes may come between a call that counts and one that lists.
  Return answer = nvml::kTooSmall;
  std::vector<Process> list(16);
  for (int attempt = 0; attempt < 5 && answer == nvml::kTooSmall; ++attempt) {
    auto count = static_cast<unsigned>(list.size());
    answer = nvml.call<Function>(function, gpu.device, &count, list.data());
    list.resize(answer == nvml::kTooSmall ? 2 * std::max<std::size_t>(count, list.size()) : count);
  }
  if (answer == nvml::kSuccess)
    for (const Process& process : list)
      holders.push_back(holder_of(process.pid, process.memory, root));
  return answer;
}

Result<std::vector<GpuHolder>> holders(const Nvml& nvml, const Handle& gpu,
                                       const std::string& root) {
  std::vector<GpuHolder> found;
  const char* function = "nvmlDeviceGetComputeRunningProcesses_v3";
  using New = nvml::DeviceGetProcesses;
  using Old = nvml::DeviceGetProcessesOld;
  Return answer = processes<New, nvml::Process>(nvml, gpu, function, root, found);
  if (answer == nvml::kNoSuchFunction) {
    function = "nvmlDeviceGetComputeRunningProcesses_v2";
    answer = processes<New, nvml::Process>(nvml, gpu, function, root, found);
  }
  if (answer == nvml::kNoSuchFunction) {
    function = "nvmlDeviceGetComputeRunningProcesses";
    answer = processes<Old, nvml::ProcessOld>(nvml, gpu, function, root, found);
  }
  const auto known = nvml.known(answer, gpu, function);
  if (!known) return known.error();
  return found;
}

std::int32_t numa_node(const std::string& pci_bus_id, const std::string& root) {
  const auto node = parse_int(
      first_line_of(fmt::format("{}/sys/bus/pci/devices/{}/numa_node", root, pci_bus_id)));
  return static_cast<std::int32_t>(node.value_or(-1));
}

std::int32_t number(const Nvml& nvml, const Handle& gpu, const char* function) {
  unsigned value = 0;
  const Return answer = nvml.call<nvml::DeviceGetNumber>(function, gpu.device, &value);
  return answer == nvml::kSuccess ? static_cast<std::int32_t>(value) : 0;
}

Result<GpuInstance> instance(const Nvml& nvml, const Handle& part, const std::string& root) {
  auto uuid = text(nvml, part, "nvmlDeviceGetUUID");
  if (!uuid) return uuid.error();
  const auto bytes = memory(nvml, part);
  if (!bytes) return bytes.error();
  auto held_by = holders(nvml, part, root);
  if (!held_by) return held_by.error();
  return GpuInstance{.uuid = std::move(*uuid),
                     .gpu_instance = number(nvml, part, "nvmlDeviceGetGpuInstanceId"),
                     .compute_instance = number(nvml, part, "nvmlDeviceGetComputeInstanceId"),
                     .memory_bytes = *bytes,
                     .holders = std::move(*held_by)};
}

bool is_split(const Nvml& nvml, const Handle& gpu) {
  unsigned now = 0, after_reset = 0;
  const Return answer =
      nvml.call<nvml::DeviceGetMigMode>("nvmlDeviceGetMigMode", gpu.device, &now, &after_reset);
  return answer == nvml::kSuccess && now == nvml::kMigEnabled;
}

Result<std::vector<GpuInstance>> instances(const Nvml& nvml, const Handle& gpu,
                                           const std::string& root) {
  const char* function = "nvmlDeviceGetMigDeviceHandleByIndex";
  std::vector<GpuInstance> found;
  const int room = number(nvml, gpu, "nvmlDeviceGetMaxMigDeviceCount");
  for (int i = 0; i < room; ++i) {
    Handle part{nullptr, fmt::format("{}, instance {}", gpu.name, i)};
    const Return answer = nvml.call<nvml::DeviceGetMigHandle>(
        function, gpu.device, static_cast<unsigned>(i), &part.device);
    if (answer == nvml::kNotFound) continue;  // a place where none was made
    const auto ours = nvml.known(answer, part, function);
    if (!ours) return ours.error();
    if (!*ours) continue;
    auto one = instance(nvml, part, root);
    if (!one) return one.error();
    found.push_back(std::move(*one));
  }
  return found;
}

Result<Gpu> describe(const Nvml& nvml, const Handle& handle, const std::string& root) {
  Gpu gpu;
  auto name = text(nvml, handle, "nvmlDeviceGetName");
  if (!name) return name.error();
  gpu.name = std::move(*name);
  auto uuid = text(nvml, handle, "nvmlDeviceGetUUID");
  if (!uuid) return uuid.error();
  gpu.uuid = std::move(*uuid);

  nvml::PciInfo pci{};
  const auto has_bus =
      nvml.known(nvml.call<nvml::DeviceGetPciInfo>("nvmlDeviceGetPciInfo_v3", handle.device, &pci),
                 handle, "nvmlDeviceGetPciInfo_v3");
  if (!has_bus) return has_bus.error();
  if (*has_bus) gpu.pci_bus_id = pci_address(pci.bus_id);
  if (*has_bus) gpu.numa_node = numa_node(gpu.pci_bus_id, root);

  const auto bytes = memory(nvml, handle);
  if (!bytes) return bytes.error();
  gpu.memory_bytes = *bytes;
  auto held_by = holders(nvml, handle, root);
  if (!held_by) return held_by.error();
  gpu.holders = std::move(*held_by);

  gpu.is_split = is_split(nvml, handle);
  if (!gpu.is_split) return gpu;
  auto parts = instances(nvml, handle, root);
  if (!parts) return parts.error();
  gpu.instances = std::move(*parts);
  return gpu;
}

}  // namespace

std::string pci_address(std::string_view bus_id) {
  std::string out(bus_id);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  // The kernel writes a domain with four digits, unless it needs more.
  const auto colon = out.find(':');
  if (colon == 8 && out.starts_with("0000")) out.erase(0, 4);
  return out;
}

Result<std::vector<Gpu>> read_gpus_through_nvml(const std::string& library,
                                                const std::string& root) {
  const auto nvml = Nvml::open(library);
  if (!nvml) return nvml.error();
  if (!*nvml) return std::vector<Gpu>();

  unsigned count = 0;
  const Return counted = (*nvml)->call<nvml::DeviceGetCount>("nvmlDeviceGetCount_v2", &count);
  if (counted != nvml::kSuccess) return (*nvml)->error(counted, "nvmlDeviceGetCount_v2");

  std::vector<Gpu> gpus;
  for (unsigned i = 0; i < count; ++i) {
    const char* function = "nvmlDeviceGetHandleByIndex_v2";
    Handle handle{nullptr, fmt::format("GPU {}", i)};
    const Return answer = (*nvml)->call<nvml::DeviceGetHandleByIndex>(function, i, &handle.device);
    // A GPU that a cgroup keeps from us is counted all the same.
    if (answer == nvml::kNoPermission) continue;
    if (answer != nvml::kSuccess)
      return (*nvml)->error(answer, fmt::format("{}: {}", handle.name, function));
    auto gpu = describe(**nvml, handle, root);
    if (!gpu) return gpu.error();
    gpu->index = static_cast<std::int32_t>(i);
    gpus.push_back(std::move(*gpu));
  }
  return gpus;
}

}  // namespace corro::launcher
