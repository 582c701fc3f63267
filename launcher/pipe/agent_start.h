#pragma once

#include "launcher/pipe/reach_result.h"
#include "launcher/pipe/way.h"

namespace corro::launcher {

struct StartedAgent {
  Bytes first;  // what has come of its frames
  bool staged = false;
};

// Starts an agent by a way at whose other end is a shell that reads its input, bringing the
// program `self` there if need be (empty: the one that runs).
ReachResult<StartedAgent> start_agent(const Way&, const std::string& self);

}  // namespace corro::launcher
