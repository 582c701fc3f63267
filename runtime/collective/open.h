#pragma once

#include <memory>

#include "runtime/collective/communicator.h"
#include "runtime/collective/environment.h"

namespace corro::runtime {

// From what the launcher told to a communicator whose neighbours are connected.
Outcome<std::unique_ptr<Communicator>> open_communicator(const JobEnvironment&);

}  // namespace corro::runtime
