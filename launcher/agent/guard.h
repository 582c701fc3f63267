#pragma once

namespace kolo {

// `horovodrun --guard`, the first process of a job on a host.  It starts the agent, which talks to
// the launcher on our stdin and stdout, waits for its end, and then kills whatever still descends
// from it.  SIGTERM ends the agent at once.
//
// The stream to the launcher ends when the guard does: an end of stream means that nothing is left.
int run_guard();

}  // namespace kolo
