// A libnvidia-ml.so.1 without GPUs.  What it shows is told by CORRO_STAND_IN_GPUS, in words that
// are separated by blanks, statement by statement, each ended by ';':
//
//   gpu UUID BUS MIB NAME…      GPUs are numbered in their order
//   mig GPU UUID GI CI MIB      an instance of one, which is then split
//   gap GPU                     a place for an instance where none is
//   holder GPU PID MIB          a process that computes there; MIB is '-' if the driver hides it
//   part_holder UUID PID MIB    the same, in an instance
//   answer FUNCTION CODE [GPU]  what that function answers, for that GPU or for all
//   hang FUNCTION               it never comes back
//   crash FUNCTION
//
// Without the variable there is no driver.

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "launcher/machine/nvml.h"

namespace {

using namespace corro::launcher::nvml;

struct Held {
  unsigned pid;
  unsigned long long memory;
};

}  // namespace

struct corro::launcher::nvml::OpaqueDevice {
  unsigned number = 0;  // of the GPU that it is or is a part of
  std::string uuid, bus, name;
  unsigned long long memory = 0;
  std::vector<Held> holders;
  std::vector<OpaqueDevice> parts;  // without a UUID: a gap
  unsigned gpu_instance = 0, compute_instance = 0;
};

namespace {

struct Script {
  bool has_driver = false;
  std::vector<OpaqueDevice> gpus;
  std::map<std::string, std::map<int, Return>> answers;  // by function and GPU; -1: all
  std::map<std::string, int> signals;                    // 0: it hangs
};

unsigned long long mib(std::istream& from) {
  std::string word;
  from >> word;
  return word == "-" ? kUnknownMemory : std::strtoull(word.c_str(), nullptr, 10) << 20;
}

Held holder(std::istream& from) {
  Held held{};
  from >> held.pid;
  held.memory = mib(from);
  return held;
}

OpaqueDevice& gpu(Script& script, std::istream& from) {
  std::size_t number = 0;
  from >> number;
  return script.gpus.at(number);
}

void read_gpu(Script& script, std::istream& from) {
  OpaqueDevice& device = script.gpus.emplace_back();
  device.number = static_cast<unsigned>(script.gpus.size()) - 1;
  from >> device.uuid >> device.bus;
  device.memory = mib(from);
  std::getline(from >> std::ws, device.name);
}

void read_part(Script& script, std::istream& from) {
  OpaqueDevice& whole = gpu(script, from);
  OpaqueDevice part;
  part.number = whole.number;
  from >> part.uuid >> part.gpu_instance >> part.compute_instance;
  part.memory = mib(from);
  whole.parts.push_back(part);
}

void read_part_holder(Script& script, std::istream& from) {
  std::string uuid;
  from >> uuid;
  for (OpaqueDevice& whole : script.gpus)
    for (OpaqueDevice& part : whole.parts)
      if (part.uuid == uuid) part.holders.push_back(holder(from));
}

void read_answer(Script& script, std::istream& from) {
  std::string function;
  Return code = 0;
  int number = -1;
  from >> function >> code;
  if (!(from >> number)) number = -1;
  script.answers[function][number] = code;
}

void read_statement(Script& script, const std::string& statement) {
  std::istringstream from(statement);
  std::string verb, function;
  from >> verb;
  if (verb == "gpu") read_gpu(script, from);
  if (verb == "mig") read_part(script, from);
  if (verb == "gap") gpu(script, from).parts.emplace_back();
  if (verb == "holder") {
    OpaqueDevice& device = gpu(script, from);
    device.holders.push_back(holder(from));
  }
  if (verb == "part_holder") read_part_holder(script, from);
  if (verb == "answer") read_answer(script, from);
  if (verb == "hang" && from >> function) script.signals[function] = 0;
  if (verb == "crash" && from >> function) script.signals[function] = SIGSEGV;
}

Script read_script() {
  Script script;
  const char* text = std::getenv("CORRO_STAND_IN_GPUS");
  if (!text) return script;
  script.has_driver = true;
  std::istringstream from(text);
  for (std::string statement; std::getline(from, statement, ';');)
    read_statement(script, statement);
  return script;
}

Script& script() {
  static Script one = read_script();
  return one;
}

// What was asked of this function; nothing: to do its work.
std::optional<Return> asked_of(const std::string& function, Device device = nullptr) {
  if (const auto found = script().signals.find(function); found != script().signals.end()) {
    while (found->second == 0) ::pause();
    std::signal(found->second, SIG_DFL);
    ::raise(found->second);
  }
  const auto& answers = script().answers[function];
  for (const int number : {device ? static_cast<int>(device->number) : -1, -1})
    if (const auto found = answers.find(number); found != answers.end()) return found->second;
  return std::nullopt;
}

Return give_text(const std::string& text, char* to, unsigned room) {
  if (text.size() + 1 > room) return kTooSmall;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kSuccess;
}

template <class Process>
Return give_processes(Device device, unsigned* count, Process* to) {
  const unsigned room = *count;
  *count = static_cast<unsigned>(device->holders.size());
  if (room < *count) return kTooSmall;
  for (const Held& held : device->holders) {
    *to = Process{};
    to->pid = held.pid;
    to->memory = held.memory;
    ++to;
  }
  return kSuccess;
}

}  // namespace

#define STAND_IN extern "C" __attribute__((visibility("default")))
#define DO_AS_ASKED(...) \
  if (const auto asked = asked_of(__func__ __VA_OPT__(, ) __VA_ARGS__)) return *asked

STAND_IN Return nvmlInit_v2() {
  DO_AS_ASKED();
  return script().has_driver ? kSuccess : kDriverNotLoaded;
}

STAND_IN const char* nvmlErrorString(Return code) {
  switch (code) {
    case 15:
      return "GPU is lost";
    case 18:
      return "Driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}

STAND_IN Return nvmlDeviceGetCount_v2(unsigned* count) {
  DO_AS_ASKED();
  *count = static_cast<unsigned>(script().gpus.size());
  return kSuccess;
}

STAND_IN Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  DO_AS_ASKED(&script().gpus.at(index));
  *device = &script().gpus.at(index);
  return kSuccess;
}

STAND_IN Return nvmlDeviceGetName(Device device, char* to, unsigned room) {
  DO_AS_ASKED(device);
  return give_text(device->name, to, room);
}

STAND_IN Return nvmlDeviceGetUUID(Device device, char* to, unsigned room) {
  DO_AS_ASKED(device);
  return give_text(device->uuid, to, room);
}

STAND_IN Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  DO_AS_ASKED(device);
  return give_text(device->bus, pci->bus_id, sizeof pci->bus_id);
}

STAND_IN Return nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  DO_AS_ASKED(device);
  *memory = {device->memory, device->memory, 0};
  return kSuccess;
}

STAND_IN Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count,
                                                        Process* to) {
  DO_AS_ASKED(device);
  return give_processes(device, count, to);
}

STAND_IN Return nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* count,
                                                        Process* to) {
  DO_AS_ASKED(device);
  return give_processes(device, count, to);
}

STAND_IN Return nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count,
                                                     ProcessOld* to) {
  DO_AS_ASKED(device);
  return give_processes(device, count, to);
}

STAND_IN Return nvmlDeviceGetMigMode(Device device, unsigned* now, unsigned* after_reset) {
  DO_AS_ASKED(device);
  *now = *after_reset = device->parts.empty() ? 0 : kMigEnabled;
  return kSuccess;
}

STAND_IN Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* count) {
  DO_AS_ASKED(device);
  *count = static_cast<unsigned>(device->parts.size());
  return kSuccess;
}

STAND_IN Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* part) {
  DO_AS_ASKED(device);
  *part = &device->parts.at(index);
  return (*part)->uuid.empty() ? kNotFound : kSuccess;
}

STAND_IN Return nvmlDeviceGetGpuInstanceId(Device device, unsigned* id) {
  DO_AS_ASKED(device);
  *id = device->gpu_instance;
  return kSuccess;
}

STAND_IN Return nvmlDeviceGetComputeInstanceId(Device device, unsigned* id) {
  DO_AS_ASKED(device);
  *id = device->compute_instance;
  return kSuccess;
}
