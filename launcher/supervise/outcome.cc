#include "launcher/supervise/outcome.h"

#include <algorithm>

namespace corro::launcher {

namespace {

int code_of_the_end(const Outcome& outcome) {
  if (outcome.failure) return outcome.failure->exit_code;
  return outcome.interrupted_by ? 128 + *outcome.interrupted_by : 0;
}

// 0 for one that was told to stop, or that nobody knows the end of.
int own_code(const WorkerEnd& end) {
  return end.status && !end.told_to_stop ? end.status->shell_code() : 0;
}

}  // namespace

int exit_code(const Outcome& outcome, ExitCodePolicy policy) {
  const int first = code_of_the_end(outcome);
  if (first == 0 || outcome.workers.empty()) return first;
  switch (policy) {
    case ExitCodePolicy::first:
      return first;
    case ExitCodePolicy::max: {
      int most = first;
      for (const WorkerEnd& end : outcome.workers) most = std::max(most, own_code(end));
      return most;
    }
    case ExitCodePolicy::rank0: {
      const int code = own_code(outcome.workers.front());
      return code ? code : first;
    }
  }
  return first;
}

}  // namespace corro::launcher
