#pragma once

#include "base/result.h"
#include "launcher/agent/protocol.h"

namespace corro::launcher {

// Something on the way to a host, or what stands in that way.
template <class T>
using ReachResult = Result<T, agent::Unreached>;

}  // namespace corro::launcher
