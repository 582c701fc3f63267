#include "launcher/output/files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace corro::launcher {

namespace {

Result<Fd> open_file(const std::string& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) return Error::from_errno("opening " + path);
  return fd;
}

}  // namespace

std::string folder_of(int rank, int size) {
  const auto width = std::to_string(std::max(size - 1, 0)).size();
  return fmt::format("rank.{:0{}}", rank, width);
}

Result<OutputFiles> OutputFiles::open(const std::string& directory, int size) {
  OutputFiles out;
  for (int rank = 0; rank < size; ++rank) {
    const auto folder = fmt::format("{}/{}", directory, folder_of(rank, size));
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return Error::from_errno("making the directory " + folder, error.value());
    auto to_out = open_file(folder + "/stdout");
    if (!to_out) return to_out.error();
    auto to_err = open_file(folder + "/stderr");
    if (!to_err) return to_err.error();
    const Outlet for_out{.fd = to_out->get()}, for_err{.fd = to_err->get()};
    out.files_.push_back({std::move(*to_out), std::move(*to_err), for_out, for_err});
  }
  return out;
}

}  // namespace corro::launcher
