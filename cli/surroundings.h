#pragma once

#include "cli/parse.h"

namespace corro {

// This process's own: its environment, its files, its machine.
Surroundings own_surroundings();

}  // namespace corro
