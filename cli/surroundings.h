#pragma once

#include "cli/parse.h"

namespace corro::cli {

// This process's own: its environment, its files, its machine.
Surroundings own_surroundings();

}  // namespace corro::cli
