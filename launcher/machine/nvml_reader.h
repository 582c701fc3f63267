#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/machine/gpus.h"

namespace corro::launcher {

// What find_gpus does in its child: loads the library into this process, asks, and takes as long as
// the driver takes.
Result<std::vector<Gpu>> read_gpus_through_nvml(const std::string& library,
                                                const std::string& root);

// "0000:3b:00.0", as in /sys, for NVML's "00000000:3B:00.0".
std::string pci_address(std::string_view bus_id);

}  // namespace corro::launcher
