#include "launcher/agent/guard.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>

#include "base/log.h"
#include "base/process.h"
#include "launcher/agent/agent.h"
#include "launcher/agent/cgroup.h"
#include "launcher/agent/sweep.h"

namespace corro::launcher {

namespace {

// Waits in line for the two things that matter here.
int next_signal(const sigset_t& signals) {
  int signo = 0;
  ::sigwait(&signals, &signo);
  return signo;
}

int watch_over(pid_t agent, const sigset_t& signals) {
  for (;;) {
    if (next_signal(signals) == SIGTERM) ::kill(agent, SIGKILL);
    while (const auto ended = reap())
      if (ended->pid == agent) return ended->status.shell_code();
  }
}

// The last line of the shell's may lack its end.  Nobody to hear it is for the agent to find out.
void say_hail(std::string_view hail) {
  const std::string line = "\n" + guard_line(hail) + "\n";
  (void)!::write(STDOUT_FILENO, line.data(), line.size());
}

void tell_of_one_left(pid_t pid) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  log(LogLevel::warning, fmt::format("process {} was killed, but stands in the kernel of host {} "
                                     "and was left there: see /proc/{}/stack",
                                     pid, host.data(), pid));
}

}  // namespace

std::string guard_line(std::string_view hail) {
  return std::string(hail) + " GUARD";
}

int run_guard(std::string_view hail) {
  if (!hail.empty()) say_hail(hail);
  // Whatever descriptors we were started with by accident must not reach the workers.
  ::close_range(3, ~0U, 0);
  // A terminal's signals are the launcher's to interpret.
  for (const int signo : {SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signo, SIG_IGN);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGCHLD);
  ::sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  adopt_orphans();

  const pid_t guard = ::getpid();
  const pid_t agent = ::fork();
  if (agent < 0) {
    std::perror("horovodrun --guard: fork");
    return 125;
  }
  if (agent == 0) return run_agent(guard);

  ::prctl(PR_SET_NAME, "corro-guard");
  const int code = watch_over(agent, signals);
  for (const pid_t left : sweep(kStuck)) tell_of_one_left(left);
  // An agent that was killed has not removed the cgroups of its workers.
  if (code != 0)
    if (const auto home = agent::own_cgroup()) agent::remove_leftovers(*home);
  return code;
}

}  // namespace corro::launcher
