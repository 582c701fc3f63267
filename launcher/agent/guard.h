#pragma once

#include <string>
#include <string_view>

namespace corro::launcher {

// `horovodrun --guard`, the first process of a job on a host.  It starts the agent, which talks to
// the launcher on our stdin and stdout, waits for its end, and then kills whatever still descends
// from it.  SIGTERM ends the agent at once.
//
// The stream to the launcher ends when the guard does: an end of stream means that nothing is left.
//
// With a hail it first says so on a line of its own: what stands before that line came from the
// login shell, what follows are frames.
int run_guard(std::string_view hail = {});

// That line, without its end.
std::string guard_line(std::string_view hail);

}  // namespace corro::launcher
