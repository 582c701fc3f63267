#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/complaint.h"
#include "base/result.h"
#include "cli/arguments.h"

namespace corro::cli {

// A configuration file as options that were given.
struct ConfigFile {
  std::vector<Given> options;
  std::vector<std::string> notes;  // keys that nobody knows, with file and line
};

inline constexpr std::size_t kConfigLimit = 64 << 10;  // the longest real one has not 2

// Pure.  YAML, one level of groups below the top, with the keys of the option table.  What `said`
// has set already is passed over.
Result<ConfigFile> read_config(const Text&, std::span<const Given> said = {});

}  // namespace corro::cli
