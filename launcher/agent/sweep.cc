#include "launcher/agent/sweep.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "base/assert.h"
#include "base/process.h"
#include "launcher/agent/evidence.h"
#include "launcher/agent/small_file.h"

namespace corro::launcher {

void adopt_orphans() {
  CORRO_ASSERT(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
}

namespace {

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

// Of each thread: the first one of a process may be gone while another stands in the kernel.
std::string states_of(pid_t pid) {
  std::string states;
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    agent::Evidence evidence;
    if (const auto stat = agent::read_small(task.path().string() + "/stat"))
      agent::parse_stat(*stat, evidence);
    states += evidence.state;
  }
  return states;
}

// Wakes at once where SIGCHLD is blocked, as it is in agent and guard.
void wait_a_moment_for_a_child() {
  constexpr timespec kMoment{0, 10'000'000};
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigtimedwait(&child, nullptr, &kMoment);
}

}  // namespace

bool is_stuck(std::string_view states) {
  return states.find('D') != states.npos && states.find_first_not_of("DZX") == states.npos;
}

std::vector<pid_t> sweep(Duration patience) {
  TimePoint last_moved = Clock::now();
  while (has_children()) {
    auto left = children();
    for (const pid_t child : left) ::kill(child, SIGKILL);
    if (!std::all_of(left.begin(), left.end(), [](pid_t p) { return is_stuck(states_of(p)); }))
      last_moved = Clock::now();
    if (Clock::now() >= last_moved + patience) return left;
    wait_a_moment_for_a_child();
    while (reap()) {
    }
  }
  return {};
}

}  // namespace corro::launcher
