#include "launcher/machine/libraries.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/text.h"

namespace corro::launcher {

namespace {

namespace fs = std::filesystem;

struct Wanted {
  const char *name, *file;
};
constexpr Wanted kWanted[] = {
    {"CUDA", "libcudart.so."}, {"NCCL", "libnccl.so."}, {"libcuda", "libcuda.so."}};

void add_folders_of(const fs::path& file, std::vector<std::string>& to) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with('/')) to.push_back(line);
}

// What /etc/ld.so.conf names; what it includes is by custom all of one folder.
std::vector<std::string> configured_folders(const std::string& root) {
  std::vector<std::string> out;
  add_folders_of(root + "/etc/ld.so.conf", out);
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(root + "/etc/ld.so.conf.d", error))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) add_folders_of(file, out);
  return out;
}

bool is_version(std::string_view text) {
  return !text.empty() && text.find('.') != text.npos &&
         text.find_first_not_of("0123456789.") == text.npos && text.front() != '.';
}

// Of "libnccl.so.2" and "libnccl.so.2.21.5" the second.  "libcuda.so.1" tells nothing.
std::optional<Installed> find_in(const std::string& folder, const Wanted& wanted) {
  std::error_code error;
  std::optional<Installed> found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto file = entry.path().filename().string();
    if (!file.starts_with(wanted.file)) continue;
    const auto version = file.substr(std::string_view(wanted.file).size());
    if (is_version(version) && (!found || version.size() > found->version.size()))
      found = Installed{wanted.name, version, entry.path().string()};
  }
  return found;
}

}  // namespace

std::vector<std::string> library_folders(std::string_view ld_library_path,
                                         const std::string& root) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view folder) {
    if (std::string path = root + std::string(folder);
        !folder.empty() && std::find(out.begin(), out.end(), path) == out.end())
      out.push_back(std::move(path));
  };
  for (const auto part : split(ld_library_path, ':')) add(part);
  for (const std::string& folder : configured_folders(root)) add(folder);
  for (const auto* standard :
       {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib",
        "/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
        "/lib64", "/usr/lib64", "/usr/local/lib", "/lib", "/usr/lib"})
    add(standard);
  return out;
}

std::vector<Installed> find_libraries(const std::vector<std::string>& env,
                                      const std::string& root) {
  std::vector<Installed> out;
  constexpr std::string_view kVariable = "LD_LIBRARY_PATH=";
  std::string_view path;
  for (const std::string& entry : env)
    if (entry.starts_with(kVariable)) path = std::string_view(entry).substr(kVariable.size());
  const auto where = library_folders(path, root);
  for (const Wanted& wanted : kWanted)
    for (const std::string& folder : where)
      if (auto found = find_in(folder, wanted)) {
        out.push_back(std::move(*found));
        break;
      }
  return out;
}

std::string driver_version(std::string_view text) {
  const auto line = text.substr(0, text.find('\n'));
  if (!line.starts_with("NVRM version:")) return {};
  const auto words = split(line, ' ');
  const auto found = std::find_if(words.begin(), words.end(), is_version);
  return found == words.end() ? "" : std::string(*found);
}

}  // namespace corro::launcher
