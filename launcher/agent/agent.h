#pragma once

#include <sys/types.h>

namespace corro::launcher {

// The far end of a session: speaks frames on stdin and stdout, starts workers, forwards their
// output, reports their end.  Returns when it has closed and nothing descends from it any more.
//
// It ends its workers when told to, when the launcher's lease runs out or its stream ends, and
// when its guard is gone.
int run_agent(pid_t guard);

}  // namespace corro::launcher
