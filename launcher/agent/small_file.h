#pragma once

#include <optional>
#include <string>

namespace corro::launcher::agent {

// A file that the kernel makes, or the beginning of one that is long.  None if it cannot be read.
std::optional<std::string> read_small(const std::string& path, std::size_t most = 1 << 20);

}  // namespace corro::launcher::agent
