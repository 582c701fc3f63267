#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/machine/inspection.h"

namespace corro::launcher {

// Where the loader would look, in its order, and then where CUDA and the driver are by custom.
std::vector<std::string> library_folders(std::string_view ld_library_path,
                                         const std::string& root = "");

// The versions of CUDA's run-time, of NCCL and of the driver's own library, by the names of their
// files, where the loader would find them first.  Nothing is opened.
std::vector<Installed> find_libraries(const std::vector<std::string>& env, const std::string& root);

// Of /proc/driver/nvidia/version: "NVRM version: … Kernel Module  535.104.05  Sat Aug 19 …".
std::string driver_version(std::string_view text);

}  // namespace corro::launcher
