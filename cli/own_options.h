#pragma once

#include "cli/options.h"

namespace corro::cli {

// The part of the table that Horovod does not have.
std::span<const Option> own_options();

}  // namespace corro::cli
