#include "launcher/machine/gpus.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fd.h"
#include "base/process.h"
#include "launcher/machine/nvml_reader.h"
#include "tests/support/folder.h"
#include "tests/support/print_error.h"

namespace corro::launcher {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;

const std::string kOne = "gpu GPU-aaaa 00000000:3B:00.0 40960 NVIDIA A100-SXM4-40GB;";
const std::string kTwo = kOne + "gpu GPU-bbbb 00000000:86:00.0 40960 NVIDIA A100-SXM4-40GB;";

std::string stand_in() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path() /
         "lib/stand_in/libnvidia-ml.so.1";
}

// Nothing is left behind, whatever was asked.
Result<std::vector<Gpu>> find(const std::string& script, GpuSource source = {}) {
  if (source.library == GpuSource().library) source.library = stand_in();
  REQUIRE(fs::exists(source.library));
  ::setenv("CORRO_STAND_IN_GPUS", script.c_str(), 1);
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = descriptors();
  auto gpus = find_gpus(source);
  ::unsetenv("CORRO_STAND_IN_GPUS");
  CHECK(descriptors() == before);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  return gpus;
}

std::vector<Gpu> found(const std::string& script, const GpuSource& source = {}) {
  auto gpus = find(script, source);
  if (!gpus) FAIL(gpus.error().text());
  return *gpus;
}

Error refusal(const std::string& script, const GpuSource& source = {}) {
  const auto gpus = find(script, source);
  REQUIRE_FALSE(gpus);
  return gpus.error();
}

using Root = test::Folder;  // takes the place of /sys and /proc

std::string own_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry ? entry->pw_name : fmt::format("uid {}", ::geteuid());
}

}  // namespace

TEST_CASE("a machine without the driver's library, or without the driver, has no GPUs") {
  CHECK(find_gpus({.library = "libcorro-no-such-library.so.1", .root = {}})->empty());
  ::unsetenv("CORRO_STAND_IN_GPUS");
  CHECK(find_gpus({.library = stand_in(), .root = {}})->empty());
  CHECK(found("answer nvmlInit_v2 9").empty());
  CHECK(found("answer nvmlInit_v2 28").empty());
  CHECK(found("").empty());
}

TEST_CASE("the driver says which GPUs there are, the kernel where they are") {
  const Root root;
  root.put("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "0\n");
  root.put("/sys/bus/pci/devices/0000:86:00.0/numa_node", "1\n");
  const auto gpus = found(kTwo, {.library = stand_in(), .root = root.path()});
  CHECK(gpus == std::vector<Gpu>{{.index = 0,
                                  .name = "NVIDIA A100-SXM4-40GB",
                                  .uuid = "GPU-aaaa",
                                  .pci_bus_id = "0000:3b:00.0",
                                  .memory_bytes = 40960 * kMiB,
                                  .numa_node = 0,
                                  .holders = {},
                                  .instances = {}},
                                 {.index = 1,
                                  .name = "NVIDIA A100-SXM4-40GB",
                                  .uuid = "GPU-bbbb",
                                  .pci_bus_id = "0000:86:00.0",
                                  .memory_bytes = 40960 * kMiB,
                                  .numa_node = 1,
                                  .holders = {},
                                  .instances = {}}});
  CHECK(*decode<Gpu>(encode(gpus[1])) == gpus[1]);
}

TEST_CASE("a bus has the name that the kernel gives it") {
  CHECK(pci_address("00000000:3B:00.0") == "0000:3b:00.0");
  CHECK(pci_address("00010000:01:00.0") == "00010000:01:00.0");
  CHECK(pci_address("0000:AF:00.0") == "0000:af:00.0");
  CHECK(pci_address("") == "");
}

TEST_CASE("who computes on a GPU is named, whichever way the driver tells it") {
  const auto script = fmt::format("{}holder 0 {} 512; holder 0 {} -;", kOne, ::getpid(), 1 << 30);
  const std::string function = "nvmlDeviceGetComputeRunningProcesses";
  const auto missing = GENERATE_COPY(std::vector<std::string>{}, std::vector<std::string>{"_v3"},
                                     std::vector<std::string>{"_v3", "_v2"});
  std::string without;
  for (const auto& version : missing) without += fmt::format("answer {}{} 13;", function, version);

  const auto gpus = found(script + without);
  REQUIRE(gpus.size() == 1);
  CHECK(gpus[0].holders == std::vector<GpuHolder>{{.pid = ::getpid(),
                                                   .user = own_name(),
                                                   .program = "unit_launcher",
                                                   .memory_bytes = 512 * kMiB},
                                                  {.pid = 1 << 30, .user = "", .program = ""}});
}

TEST_CASE("more holders than anybody expects are all named") {
  std::string script = kOne;
  for (int i = 0; i < 100; ++i) script += fmt::format("holder 0 {} 1;", (1 << 30) + i);
  CHECK(found(script)[0].holders.size() == 100);
}

TEST_CASE("a GPU that is split has instances, which may leave places empty") {
  const auto gpus = found(kTwo +
                          "mig 1 MIG-1111 7 0 4864; gap 1; mig 1 MIG-2222 9 1 4864;"
                          "part_holder MIG-2222 1073741824 3");
  REQUIRE(gpus.size() == 2);
  CHECK_FALSE(gpus[0].is_split);
  CHECK(gpus[1].is_split);
  CHECK(gpus[1].instances ==
        std::vector<GpuInstance>{
            {.uuid = "MIG-1111",
             .gpu_instance = 7,
             .compute_instance = 0,
             .memory_bytes = 4864 * kMiB,
             .holders = {}},
            {.uuid = "MIG-2222",
             .gpu_instance = 9,
             .compute_instance = 1,
             .memory_bytes = 4864 * kMiB,
             .holders = {{.pid = 1 << 30, .user = "", .program = "", .memory_bytes = 3 * kMiB}}}});
  CHECK(*decode<Gpu>(encode(gpus[1])) == gpus[1]);
}

TEST_CASE("a GPU that we may not use is passed over and counted") {
  const auto gpus = found(kTwo + "answer nvmlDeviceGetHandleByIndex_v2 4 0");
  REQUIRE(gpus.size() == 1);
  CHECK(gpus[0].uuid == "GPU-bbbb");
  CHECK(gpus[0].index == 1);
}

TEST_CASE("what a driver does not know stays unknown") {
  const auto function = GENERATE(as<std::string>(), "nvmlDeviceGetName", "nvmlDeviceGetMemoryInfo",
                                 "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMigMode",
                                 "nvmlDeviceGetComputeRunningProcesses_v3");
  const auto code = GENERATE(3, 4);
  const auto gpus = found(fmt::format("{}answer {} {}", kOne, function, code));
  REQUIRE(gpus.size() == 1);
  CHECK(gpus[0].uuid == "GPU-aaaa");
}

TEST_CASE("an error of the driver is told in its own words") {
  const auto [script, text] = GENERATE(table<std::string, std::string>({
      {"answer nvmlInit_v2 18", "nvmlInit_v2: Driver/library version mismatch (18)"},
      {"answer nvmlDeviceGetCount_v2 999", "nvmlDeviceGetCount_v2: Unknown Error (999)"},
      {"answer nvmlDeviceGetHandleByIndex_v2 15 1",
       "GPU 1: nvmlDeviceGetHandleByIndex_v2: GPU is lost (15)"},
      {"answer nvmlDeviceGetUUID 15 0", "GPU 0: nvmlDeviceGetUUID: GPU is lost (15)"},
      {"answer nvmlDeviceGetMemoryInfo 15 1", "GPU 1: nvmlDeviceGetMemoryInfo: GPU is lost (15)"},
      {"answer nvmlDeviceGetComputeRunningProcesses_v3 15 1",
       "GPU 1: nvmlDeviceGetComputeRunningProcesses_v3: GPU is lost (15)"},
  }));
  CHECK(refusal(kTwo + script) == Error(Errc::io, "asking the NVIDIA driver: " + text));
}

TEST_CASE("a driver that hangs is waited for as long as we have patience, and left") {
  const auto function = GENERATE(as<std::string>(), "nvmlInit_v2", "nvmlDeviceGetMemoryInfo");
  const auto begin = Clock::now();
  CHECK(
      refusal(kOne + "hang " + function, {.library = stand_in(), .root = {}, .patience = 100ms}) ==
      Error(Errc::timed_out, "asking the NVIDIA driver: no answer for 0.1 s"));
  CHECK(Clock::now() - begin < 2s);
}

TEST_CASE("a library that crashes takes nobody with it") {
  CHECK(refusal(kOne + "crash nvmlDeviceGetName") ==
        Error(Errc::io, "asking the NVIDIA driver: the process that called " + stand_in() +
                            " was killed by SIGSEGV"));
}

TEST_CASE("who waits for a driver that hangs holds none of our descriptors") {
  Pipe stream = *make_pipe();
  ::setenv("CORRO_STAND_IN_GPUS", "hang nvmlInit_v2", 1);
  bool answered = true;
  std::thread asking([&] {
    answered = static_cast<bool>(find_gpus({.library = stand_in(), .root = {}, .patience = 500ms}));
  });
  std::vector<pid_t> waiting;
  while (waiting.empty()) waiting = children();
  stream.write_end.reset();
  std::array<std::uint8_t, 1> byte;
  CHECK(read_some(stream.read_end.get(), byte)->bytes == 0);
  // And that was not the end of the process, which would close everything, too.
  CHECK_FALSE(fs::is_empty(fmt::format("/proc/{}/fd", waiting[0])));
  asking.join();
  CHECK_FALSE(answered);
  ::unsetenv("CORRO_STAND_IN_GPUS");
}

}  // namespace corro::launcher
