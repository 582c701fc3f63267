#pragma once

#include <span>
#include <string>

namespace corro::cli {

// Two lines; in front of what is wrong with these words of a command line.
std::string usage_text(std::span<const std::string> words);

// What --help prints, `width` columns wide.
std::string help_text(int width = 80);

}  // namespace corro::cli
