#include "launcher/agent/sweep.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "base/assert.h"
#include "base/process.h"

namespace kolo {

void adopt_orphans() {
  KOLO_ASSERT(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
}

void sweep() {
  for (;;) {
    for (const pid_t child : children()) ::kill(child, SIGKILL);
    // All that we know of are dying: wait for one, take the others that are done, look again.
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED) != 0 && errno == ECHILD) return;
    while (reap()) {
    }
  }
}

}  // namespace kolo
