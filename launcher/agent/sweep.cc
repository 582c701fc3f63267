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

namespace {

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

}  // namespace

void sweep() {
  while (has_children()) {
    for (const pid_t child : children()) ::kill(child, SIGKILL);
    // All that we know of are dying: wait for one, take the others that are done, look again.
    siginfo_t info{};
    ::waitid(P_ALL, 0, &info, WEXITED);
    while (reap()) {
    }
  }
}

}  // namespace kolo
