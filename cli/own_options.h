#pragma once

#include "cli/options.h"

namespace kolo {

// The part of the table that Horovod does not have.
std::span<const Option> own_options();

}  // namespace kolo
