#pragma once

#include <string>

namespace kolo {

// One or two lines; in front of what is wrong with a command line.
std::string usage_text();

// What --help prints, `width` columns wide.
std::string help_text(int width = 80);

}  // namespace kolo
