#pragma once

#include "launcher/pipe/reach.h"
#include "launcher/pipe/wire.h"

namespace kolo {

struct StartedAgent {
  Bytes first;  // what has come of its frames
  bool staged = false;
};

// Starts an agent by a wire at whose other end is a shell that reads its input, bringing the
// program `self` there if need be (empty: the one that runs).  Which host it was is for the caller
// to say.
Reach<StartedAgent> start_agent(Wire&, const std::string& self);

}  // namespace kolo
