#include "launcher/job/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace corro::launcher {

// One that we were started with ignored (nohup, a background job) stays ignored.
Signals::Signals() {
  sigset_t ours;
  ::sigemptyset(&ours);
  for (const int signo : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH}) {
    struct sigaction before {};
    ::sigaction(signo, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaddset(&ours, signo);
  }
  ::pthread_sigmask(SIG_BLOCK, &ours, &before_);
  fd_ = Fd(::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
  // A reader that goes away is an error of that write, and no child may vanish before it is
  // waited for: whoever started us may have left it to the kernel to reap them.
  ::signal(SIGPIPE, SIG_IGN);
  // A job in the background that reads from its terminal is told so, and not stopped; nor is one
  // that writes to it, where the user has said `stty tostop`: agents that do not hear of us would
  // take us for dead.
  ::signal(SIGTTIN, SIG_IGN);
  ::signal(SIGTTOU, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
}

Signals::~Signals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> Signals::next() {
  signalfd_siginfo info;
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace corro::launcher
