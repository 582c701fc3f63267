#pragma once

#include "cli/parse.h"

namespace kolo {

// This process's own: its environment, its files, its machine.
Surroundings own_surroundings();

}  // namespace kolo
