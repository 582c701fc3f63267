#include "launcher/machine/inspection.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/process.h"
#include "launcher/machine/errand.h"
#include "launcher/machine/libraries.h"
#include "launcher/machine/python.h"
#include "launcher/machine/script.h"

namespace corro::launcher {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// A directory for one test.
class Scene {
 public:
  Scene() { fs::create_directories(top_); }
  ~Scene() { fs::remove_all(top_); }

  std::string path(const std::string& name) const { return (top_ / name).string(); }

  std::string file(const std::string& name, const std::string& content = "", mode_t mode = 0644) {
    fs::create_directories((top_ / name).parent_path());
    std::ofstream(top_ / name) << content;
    ::chmod(path(name).c_str(), mode);
    return path(name);
  }

 private:
  const fs::path top_ = fs::temp_directory_path() / fmt::format("corro-inspection-{}", ::getpid());
};

std::vector<std::string> with_path(const std::string& path) {
  return {"PATH=" + path};
}

Inspection seen(InspectionRequest request, Duration patience = 10s) {
  return inspect(request, Deadline::in(patience));
}

bool has_trouble(const Inspection& seen, const std::string& text) {
  return std::any_of(seen.troubles.begin(), seen.troubles.end(),
                     [&](const auto& trouble) { return trouble.text.find(text) != text.npos; });
}

}  // namespace

TEST_CASE("a machine tells what it is") {
  const auto found = seen({.cwd = "/tmp", .argv = {"sh"}, .env = with_path("/usr/bin:/bin")});
  CHECK(found.cores >= 1);
  CHECK(found.memory_bytes > found.available_bytes);
  CHECK(found.available_bytes > 0);
  CHECK_FALSE(found.hostname.empty());
  CHECK_FALSE(found.architecture.empty());
  CHECK(found.identity == seen({}).identity);
  CHECK(found.nofile.soft <= found.nofile.hard);
  REQUIRE(found.cwd);
  CHECK((found.cwd->exists && found.cwd->can_enter && found.cwd->can_write));
  CHECK(found.cwd->free_bytes > 0);
  REQUIRE(found.program);
  CHECK(found.program->path == "/usr/bin/sh");
  CHECK(std::any_of(found.nics.begin(), found.nics.end(),
                    [](const Nic& nic) { return nic.loopback && nic.ip == "127.0.0.1"; }));
}

TEST_CASE("who asks for nothing hears nothing of it") {
  const auto found = seen({.cwd = {}, .argv = {}, .env = with_path("/nowhere")});
  CHECK_FALSE(found.cwd);
  CHECK_FALSE(found.program);
  REQUIRE(found.python);
  CHECK(found.python->path.empty());
}

TEST_CASE("a directory is missing, is none, or cannot be written to") {
  Scene scene;
  const auto missing = seen({.cwd = scene.path("gone")}).cwd.value();
  CHECK_FALSE(missing.exists);
  CHECK(missing.why_not == scene.path("gone") + ": No such file or directory");
  const auto file = seen({.cwd = scene.file("file")}).cwd.value();
  CHECK(file.exists);
  CHECK_FALSE(file.can_enter);
  CHECK(file.why_not == scene.path("file") + ": it is not a directory");
  CHECK_FALSE(seen({.cwd = "/proc/1"}).cwd.value().can_write);
}

TEST_CASE("a program is missing, or is there and cannot be executed") {
  Scene scene;
  const auto env = with_path(scene.path("bin"));
  CHECK(seen({.argv = {"train"}, .env = env}).program.value().path.empty());
  scene.file("bin/train", "#!/bin/sh\n", 0644);
  const auto plain =
      seen({.cwd = scene.path("bin"), .argv = {"./train"}, .env = env}).program.value();
  CHECK_FALSE(plain.can_run);
  CHECK(plain.path == scene.path("bin/./train"));
  scene.file("bin/train", "#! /bin/sh -e\n", 0755);
  CHECK(seen({.argv = {"train"}, .env = env}).program.value().interpreter == "/bin/sh -e");
}

TEST_CASE("what an interpreter is told to run is its first word that is no option's") {
  const auto script = [](std::vector<std::string> argv) {
    const auto found = script_of(argv);
    return found ? found->name : "";
  };
  CHECK(script({"python3", "train.py", "-c", "x"}) == "train.py");
  CHECK(script({"/opt/venv/bin/python3.12", "-u", "-W", "ignore", "-Xdev", "a.py"}) == "a.py");
  CHECK(script({"python", "-uX", "dev", "--check-hash-based-pycs", "never", "--", "-a.py"}) ==
        "-a.py");
  CHECK(script({"bash", "-eo", "pipefail", "+x", "--rcfile", "rc", "run.sh"}) == "run.sh");
  for (const std::vector<std::string>& none : {std::vector<std::string>{"python3", "-m", "train"},
                                               {"python3", "-uc", "print()", "x"},
                                               {"python3", "-", "x"},
                                               {"python3", "-u"},
                                               {"python3", "-W"},
                                               {"sh", "-ec", "train.sh"},
                                               {"bash", "-s", "x"},
                                               {"./train", "x"},
                                               {"pythia/train", "train.py"},
                                               {}})
    CHECK(script(none).empty());
}

TEST_CASE("a script is read, missing, or in the shell's path; none is looked for in vain") {
  Scene scene;
  scene.file("bin/tool", "", 0755);
  const auto look = [&](const std::string& program, const std::string& name) {
    return seen({.cwd = scene.path(""),
                 .argv = {program, name},
                 .env = with_path(scene.path("bin"))})
        .script.value();
  };
  const auto missing = look("python3", "train.py");
  CHECK(missing.path == scene.path("train.py"));
  CHECK_FALSE((missing.exists || missing.can_read));
  CHECK(missing.why_not == scene.path("train.py") + ": No such file or directory");
  scene.file("train.py");
  CHECK(look("python3", "train.py").can_read);
  CHECK(look("sh", "tool").path == scene.path("bin/tool"));
  CHECK_FALSE(look("python3", "tool").exists);
  CHECK_FALSE(seen({.cwd = "/", .argv = {"true", "train.py"}}).script);
}

TEST_CASE("the Python is the command's own: by its name, by its script, or what is there") {
  Scene scene;
  scene.file("bin/python3", "#!/bin/sh\n", 0755);
  const auto other = scene.file("bin/python3.99", "#!/bin/sh\n", 0755);
  const InspectionRequest request{
      .cwd = "/", .argv = {}, .env = with_path(scene.path("bin")), .root = {}};
  const auto python = [&](const FoundProgram& program) { return python_of(request, program); };
  CHECK(python({}) == scene.path("bin/python3"));
  CHECK(python({other, true, {}, {}}) == other);
  CHECK(python({"/x/train.py", true, {}, other}) == other);
  CHECK(python({"/x/train.py", true, {}, "/usr/bin/env python3.99"}) == other);
  CHECK(python({"/x/train.sh", true, {}, "/bin/sh"}) == scene.path("bin/python3"));
}

TEST_CASE("frameworks are found by their metadata, where a worker would import them from") {
  Scene scene;
  scene.file("lib/torch-9.8.7.dist-info/METADATA", "Name: torch\nVersion: 9.8.7+cu126\n");
  scene.file("lib/torch/__init__.py", "raise SystemExit('imported')\n");
  auto env = with_path("/usr/bin:/bin");
  env.push_back("PYTHONPATH=" + scene.path("lib"));
  const auto python = seen({.cwd = "/", .argv = {"python3"}, .env = env}).python.value();
  CHECK(python.path == "/usr/bin/python3");
  CHECK(python.version.starts_with("3."));
  REQUIRE_FALSE(python.packages.empty());
  CHECK(python.packages.front() == Installed{"torch", "9.8.7+cu126", scene.path("lib")});
}

TEST_CASE("lines that others print are not taken for the report") {
  const auto python = parse_python_report(
      "welcome\ncorro-inspection\tpython\t3.11.2\t/usr/bin/python3\n"
      "corro-inspection\ttorch\t2.13.0\t/lib\ncorro-inspection\thalf");
  CHECK(python == Python{"/usr/bin/python3", "3.11.2", {{"torch", "2.13.0", "/lib"}}});
}

TEST_CASE("a Python that hangs or fails is a trouble, and nothing waits for it") {
  Scene scene;
  const auto env = with_path(scene.path("bin") + ":/usr/bin:/bin");
  scene.file("bin/python3", "#!/bin/sh\nsleep 60\n", 0755);
  const auto begin = Clock::now();
  const auto hung = seen({.argv = {"python3"}, .env = env}, 300ms);
  CHECK(Clock::now() - begin < 10s);
  CHECK_FALSE(hung.python);
  CHECK(has_trouble(hung, "no answer for "));

  scene.file("bin/python3", "#!/bin/sh\nexit 3\n", 0755);
  const auto failed = seen({.argv = {"python3"}, .env = env});
  CHECK(has_trouble(failed, "exited with code 3 and did not tell its version"));
}

TEST_CASE("CUDA, NCCL and the driver's library tell their versions by the names of their files") {
  Scene scene;
  scene.file("root/usr/local/cuda/lib64/libcudart.so.12");
  scene.file("root/usr/local/cuda/lib64/libcudart.so.12.4.127");
  scene.file("root/usr/lib/x86_64-linux-gnu/libcuda.so.1");
  scene.file("root/usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05");
  scene.file("root/usr/lib/x86_64-linux-gnu/libnccl.so.2.18.1");
  scene.file("root/opt/nccl/libnccl.so.2.21.5");
  const auto root = scene.path("root");
  CHECK(find_libraries({"LD_LIBRARY_PATH=:/opt/nccl"}, root) ==
        std::vector<Installed>{
            {"CUDA", "12.4.127", root + "/usr/local/cuda/lib64/libcudart.so.12.4.127"},
            {"NCCL", "2.21.5", root + "/opt/nccl/libnccl.so.2.21.5"},
            {"libcuda", "535.104.05", root + "/usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05"}});
  CHECK(find_libraries({}, scene.path("empty")).empty());
}

TEST_CASE("the driver tells its version in two ways") {
  CHECK(driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 "
                       "01:15:15 UTC 2023\nGCC version:  gcc 12") == "535.104.05");
  CHECK(driver_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  "
                       "Release Build") == "550.54.15");
  CHECK(driver_version("").empty());
}

TEST_CASE("an errand answers, crashes, or is given up; nobody is left") {
  auto good = Errand::send([] { return Bytes{1, 2, 3}; });
  REQUIRE(good);
  CHECK(*good->wait(Deadline::in(5s)) == Bytes{1, 2, 3});
  CHECK(good->end() == ExitStatus::exited(0));

  auto crash = Errand::send([]() -> Bytes { ::_exit(7); });
  REQUIRE(crash);
  CHECK(crash->wait(Deadline::in(5s))->empty());
  CHECK(crash->end() == ExitStatus::exited(7));

  auto hang = Errand::send([]() -> Bytes {
    for (;;) ::pause();
  });
  REQUIRE(hang);
  CHECK(hang->wait(Deadline::in(50ms)).error().code() == Errc::timed_out);
  CHECK(hang->end() == ExitStatus::killed(SIGKILL));
  CHECK(children().empty());
}

}  // namespace corro::launcher
