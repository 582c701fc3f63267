#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

#include "base/time.h"

namespace corro::launcher {

// Makes this process the parent of whatever its descendants leave behind, so that none escapes
// by setsid or a double fork.
void adopt_orphans();

// Pure.  Of the states of its threads, as in /proc: whether a process that was killed cannot end
// because one of them stands in the kernel, and the others have ended or do the same.
bool is_stuck(std::string_view states);

// Kills and reaps every child until there is none, those included that come to us meanwhile
// because their parent died.  Each is our child until we reap it, so that no other process can
// have its number.
//
// One that is dying is waited for, however large it is.  One that stands in the kernel, where no
// signal arrives (a file server that is gone, a driver), may stay there for ever: when for so long
// nothing else was left, those are returned and left to whoever adopts them.
std::vector<pid_t> sweep(Duration patience);

// What agent and guard have of it, one after the other, so that the end comes within a second.
inline constexpr Duration kStuck = std::chrono::milliseconds(200);

}  // namespace corro::launcher
