#include "launcher/machine/python.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <csignal>
#include <filesystem>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"

namespace corro::launcher {

namespace {

constexpr std::string_view kMark = "corro-inspection";
constexpr std::size_t kReportLimit = 1 << 20;

// Whatever a Python of the last fifteen years understands.  Metadata only: to import torch takes
// seconds, and may start a GPU's context.
constexpr const char* kScript = R"(
import sys
say = lambda *words: sys.stdout.write("\t".join(("corro-inspection",) + words) + "\n")
say("python", "%d.%d.%d" % sys.version_info[:3], sys.executable)
try:
    import importlib.metadata as metadata
except ImportError:
    sys.exit(0)
for name in sys.argv[1:]:
    try:
        found = metadata.distribution(name)
        say(name, str(found.version), str(found.locate_file("")))
    except Exception:
        pass
)";

constexpr const char* kPackages[] = {"torch",
                                     "tensorflow",
                                     "jax",
                                     "keras",
                                     "mxnet",
                                     "numpy",
                                     "horovod",
                                     "nvidia-nccl-cu11",
                                     "nvidia-nccl-cu12",
                                     "nvidia-nccl-cu13",
                                     "nvidia-cuda-runtime",
                                     "nvidia-cuda-runtime-cu11",
                                     "nvidia-cuda-runtime-cu12"};

bool is_python(const std::string& path) {
  return std::filesystem::path(path).filename().string().starts_with("python");
}

std::string found(const std::string& name, const InspectionRequest& request) {
  const auto path = find_program(name, request.env, request.cwd);
  return path ? *path : "";
}

// "/usr/bin/env python3" is what env finds.
std::string interpreter_of(const FoundProgram& program, const InspectionRequest& request) {
  const auto words = split(program.interpreter, ' ');
  const std::string first(words.front());
  const bool by_env = std::filesystem::path(first).filename() == "env" && words.size() > 1;
  const std::string name = by_env ? std::string(words.back()) : first;
  return is_python(name) ? found(name, request) : "";
}

std::string read_to_the_end(const Fd& from) {
  std::string text;
  std::array<std::uint8_t, 4096> buffer;
  while (text.size() < kReportLimit) {
    const auto moved = read_some(from.get(), buffer);
    if (!moved || moved->bytes == 0) break;
    text.append(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(moved->bytes));
  }
  return text;
}

ExitStatus wait_for(pid_t pid) {
  constexpr int kLookMs = 1;
  for (;;) {
    if (const auto ended = reap(pid)) return ended->status;
    ::poll(nullptr, 0, kLookMs);
  }
}

}  // namespace

std::string python_of(const InspectionRequest& request, const FoundProgram& program) {
  if (is_python(program.path)) return program.path;
  if (auto path = interpreter_of(program, request); !path.empty()) return path;
  auto path = found("python3", request);
  return path.empty() ? found("python", request) : path;
}

Result<Python> ask_python(const std::string& path, const InspectionRequest& request) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  std::vector<std::string> argv = {path, "-c", kScript};
  argv.insert(argv.end(), std::begin(kPackages), std::end(kPackages));
  const auto pid = spawn({.argv = std::move(argv),
                          .env = request.env,
                          .cwd = request.cwd,
                          .out = pipe->write_end.get(),
                          .death_signal = SIGKILL});
  if (!pid) return pid.error();
  pipe->write_end.reset();
  Python python = parse_python_report(read_to_the_end(pipe->read_end));
  const auto status = wait_for(*pid);
  if (python.version.empty())
    return Error(Errc::io, fmt::format("{} {} and did not tell its version", path, status.text()));
  python.path = path;
  return python;
}

Python parse_python_report(std::string_view text) {
  Python out;
  for (const auto line : split(text, '\n')) {
    const auto words = split(line, '\t');
    if (words.size() != 4 || words.front() != kMark) continue;
    if (words[1] == "python") {
      out.version = words[2];
      out.path = words[3];
    } else {
      out.packages.push_back({std::string(words[1]), std::string(words[2]), std::string(words[3])});
    }
  }
  return out;
}

}  // namespace corro::launcher
