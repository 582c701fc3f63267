#include "cli/check_build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "cli/version.h"
#include "launcher/machine/libraries.h"

namespace corro::cli {

namespace {

namespace fs = std::filesystem;
using Heading = Capability::Heading;

// "libnccl.so.2: /usr/lib/libnccl.so.2", or where it is not.
std::string whereabouts(const std::vector<std::string>& names,
                        const std::vector<std::string>& folders) {
  std::error_code error;
  for (const std::string& name : names)
    for (const std::string& folder : folders)
      if (const auto path = fs::path(folder) / name; fs::exists(path, error))
        return fmt::format("{} is there", path.string());
  return fmt::format("{} is not in {}", fmt::join(names, " or "), fmt::join(folders, ", "));
}

Capability framework(std::string name, std::string_view module) {
  return {Heading::framework,
          std::move(name),
          false,
          {fmt::format("{} is not part of Corro {}", module, CORRO_VERSION)}};
}

// The wheel puts this program into the bin of the Python that has horovod.torch.
Capability pytorch() {
  std::error_code error;
  const fs::path prefix = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  for (const auto& python : fs::directory_iterator(prefix / "lib", error))
    for (const char* packages : {"site-packages", "dist-packages"})
      if (const fs::path file = python.path() / packages / "horovod/torch/__init__.py";
          fs::exists(file, error))
        return {Heading::framework, "PyTorch", true, {fmt::format("{} is there", file.string())}};
  return {Heading::framework,
          "PyTorch",
          false,
          {fmt::format("horovod.torch is in no Python under {}; Corro's wheel brings it",
                       prefix.string())}};
}

std::string_view title_of(Heading heading) {
  switch (heading) {
    case Heading::framework:
      return "framework";
    case Heading::controller:
      return "controller";
    case Heading::operation:
      return "operation";
  }
  return {};
}

std::string section(const std::vector<Capability>& capabilities, Heading heading) {
  std::string text;
  for (const Capability& each : capabilities)
    if (each.heading == heading)
      text += fmt::format("    [{}] {}\n", each.available ? 'X' : ' ', each.name);
  return text;
}

}  // namespace

std::vector<Capability> find_capabilities(const launcher::ReadVariable& variable) {
  const auto folders = launcher::library_folders(variable("LD_LIBRARY_PATH").value_or(""));
  const std::string unused = fmt::format("Corro {} cannot use it yet", CORRO_VERSION);
  const auto library = [&](Heading heading, std::string name, std::vector<std::string> files) {
    return Capability{heading, std::move(name), false, {whereabouts(files, folders), unused}};
  };
  const std::vector<std::string> mpi = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12"};
  const std::vector<std::string> gloo = {"libgloo.so", "libgloo.so.0"};
  return {
      framework("TensorFlow", "horovod.tensorflow"),
      pytorch(),
      framework("MXNet", "horovod.mxnet"),
      library(Heading::controller, "MPI", mpi),
      {Heading::controller, "Gloo", true, {"Corro's own controller answers to --gloo"}},
      library(Heading::operation, "NCCL", {"libnccl.so.2"}),
      {Heading::operation, "DDL", false, {"IBM no longer has it"}},
      library(Heading::operation, "CCL", {"libccl.so.1"}),
      library(Heading::operation, "MPI", mpi),
      {Heading::operation,
       "Gloo",
       true,
       {"Corro's own operations stand in for it", whereabouts(gloo, folders), unused}},
  };
}

std::string check_build_text(const std::vector<Capability>& capabilities, bool verbose) {
  std::string text;
  if (verbose)
    for (const Capability& each : capabilities)
      for (const std::string& line : each.why)
        text += fmt::format("{} {}: {}\n", title_of(each.heading), each.name, line);
  text += fmt::format("{}Horovod v{}:\n", verbose ? "\n" : "", kHorovodVersion);
  text += "\nAvailable Frameworks:\n" + section(capabilities, Heading::framework);
  text += "\nAvailable Controllers:\n" + section(capabilities, Heading::controller);
  text += "\nAvailable Tensor Operations:\n" + section(capabilities, Heading::operation);
  text.insert(text.size() - 1, "    ");  // as Horovod ends it
  return text;
}

}  // namespace corro::cli
