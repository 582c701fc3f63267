#pragma once

#include "base/result.h"
#include "launcher/agent/protocol.h"

namespace corro {

// Something on the way to a host, or what stands in that way.
template <class T>
using Reach = Result<T, agent::Unreached>;

}  // namespace corro
