#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/options.h"

namespace corro::cli {

// What the user asked for cannot be done.
Error refuse(std::string text);

// "argument -np/--num-proc: WHAT", as argparse has it.
std::string argument_text(const Option&, std::string_view what);
Error refuse(const Option&, std::string_view what);

}  // namespace corro::cli
