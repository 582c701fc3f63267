#include "launcher/machine/errand.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace corro::launcher {

namespace {

[[noreturn]] void answer_and_exit(const Errand::Work& work, int to) {
  const Bytes bytes = work();
  for (ByteView left = bytes; !left.empty();) {
    const auto moved = write_some(to, left);
    if (!moved) break;
    left = left.subspan(moved->bytes);
  }
  ::_exit(0);
}

// The child must hold nothing of its parent's: a stream that it kept open would never seem to end,
// and a signal handler would write to the parent's loop.  Signals are blocked when it comes here.
void become_nobody(int keep) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signo = 1; signo < NSIG; ++signo) ::sigaction(signo, &standard, nullptr);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  if (keep > 3) ::close_range(3, static_cast<unsigned>(keep) - 1, 0);
  ::close_range(static_cast<unsigned>(keep) + 1, ~0U, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// fork without exec, because glibc leaves malloc and the loader usable in the child.
Result<pid_t> start_child(const Errand::Work& work, const Pipe& pipe) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    // Above 2, where nothing replaces it.
    const int to = ::fcntl(pipe.write_end.get(), F_DUPFD_CLOEXEC, 3);
    if (to < 0) ::_exit(1);
    become_nobody(to);
    answer_and_exit(work, to);
  }
  const int number = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return Error::from_errno("starting a process", number);
  return pid;
}

bool becomes_readable(int fd, const Deadline& deadline) {
  pollfd entry{fd, POLLIN, 0};
  int n;
  do n = ::poll(&entry, 1, deadline.poll_timeout_ms());
  while (n < 0 && errno == EINTR);
  return n > 0;
}

}  // namespace

Result<Errand> Errand::send(const Work& work) {
  const auto began = Clock::now();
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  const auto child = start_child(work, *pipe);
  if (!child) return child.error();
  if (auto set = set_nonblocking(pipe->read_end.get()); !set) return set.error();
  return Errand(*child, std::move(pipe->read_end), began);
}

bool Errand::advance() {
  std::array<std::uint8_t, 4096> buffer;
  while (!over_) {
    const auto moved = read_some(answer_.get(), buffer);
    if (moved && moved->again) return false;
    over_ = !moved || moved->bytes == 0;
    if (over_)
      reap_it();
    else
      append(bytes_, ByteView(buffer).first(moved->bytes));
  }
  return true;
}

Result<Bytes> Errand::wait(Deadline deadline) {
  while (!advance())
    if (!becomes_readable(answer_.get(), deadline)) {
      give_up();
      const auto waited = std::chrono::round<std::chrono::milliseconds>(deadline.at - began_);
      return Error(Errc::timed_out, fmt::format("no answer for {} s", waited.count() / 1000.0));
    }
  return take();
}

void Errand::give_up() {
  if (over_ || !answer_) return;  // else it has moved elsewhere
  over_ = true;
  ::kill(pid_, SIGKILL);
  reap_it();
}

// One that is stuck in the kernel ends some day, and is then reaped by whoever reaps everything.
void Errand::reap_it() {
  constexpr auto kUntilKilled = std::chrono::seconds(1);
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (pidfd) becomes_readable(pidfd.get(), Deadline::in(kUntilKilled));
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
    return;
  end_ = info.si_code == CLD_EXITED ? ExitStatus::exited(info.si_status)
                                    : ExitStatus::killed(info.si_status);
}

}  // namespace corro::launcher
