#include "launcher/machine/gpus.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "base/exit_status.h"
#include "base/fd.h"
#include "launcher/machine/nvml_reader.h"

namespace kolo {

namespace {

// What the child tells.
struct Answer {
  std::optional<std::string> error;
  std::vector<Gpu> gpus;
  KOLO_FIELDS(error, gpus)
};

[[noreturn]] void answer_and_exit(const GpuSource& source, int to) {
  Answer answer;
  if (auto gpus = read_gpus_through_nvml(source.library, source.root))
    answer.gpus = std::move(*gpus);
  else
    answer.error = gpus.error().text();
  const Bytes bytes = encode(answer);
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

// A child and not a thread: a driver with a sick GPU may hold whoever asks it in the kernel, where
// not even SIGKILL arrives.  A thread that stands there keeps its process from ever ending; a child
// keeps only itself.  The library, which starts threads and opens devices, is gone with it, too.
//
// fork without exec, because glibc leaves malloc and the loader usable in the child.
Result<pid_t> start_child(const GpuSource& source, const Pipe& pipe) {
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
    answer_and_exit(source, to);
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

// All up to the end of the stream; nothing if that does not come in time.
std::optional<Bytes> read_all(const Fd& from, const Deadline& deadline) {
  Bytes all;
  std::array<std::uint8_t, 4096> buffer;
  while (becomes_readable(from.get(), deadline)) {
    const auto moved = read_some(from.get(), buffer);
    if (!moved) return std::nullopt;
    if (moved->bytes == 0) return all;
    append(all, ByteView(buffer).first(moved->bytes));
  }
  return std::nullopt;
}

// One that is stuck in the kernel ends some day, and is then reaped by whoever reaps everything.
std::optional<ExitStatus> end_and_reap(pid_t pid) {
  constexpr auto kUntilKilled = std::chrono::milliseconds(200);
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd) becomes_readable(pidfd.get(), Deadline::in(kUntilKilled));
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
    return std::nullopt;
  return info.si_code == CLD_EXITED ? ExitStatus::exited(info.si_status)
                                    : ExitStatus::killed(info.si_status);
}

Error no_answer(const GpuSource& source) {
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(source.patience);
  return Error(Errc::timed_out, fmt::format("no answer for {} s", waited.count() / 1000.0));
}

Result<std::vector<Gpu>> ask(const GpuSource& source) {
  const auto deadline = Deadline::in(source.patience);
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  const auto child = start_child(source, *pipe);
  if (!child) return child.error();
  pipe->write_end.reset();
  const auto bytes = read_all(pipe->read_end, deadline);
  if (!bytes) ::kill(*child, SIGKILL);
  const auto end = end_and_reap(*child);
  if (!bytes) return no_answer(source);

  auto answer = decode<Answer>(*bytes);
  if (!answer)
    return Error(Errc::io, fmt::format("the process that called {} {}", source.library,
                                       end ? end->text() : "said nothing"));
  if (answer->error) return Error(Errc::io, *answer->error);
  return std::move(answer->gpus);
}

// Only to see whether it is there, which it is not on most machines: a child costs more.
bool has_library(const std::string& name) {
  void* library = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library) ::dlclose(library);
  return library;
}

}  // namespace

Result<std::vector<Gpu>> find_gpus(const GpuSource& source) {
  if (!has_library(source.library)) return std::vector<Gpu>();
  auto gpus = ask(source);
  if (!gpus) return std::move(gpus.error()).during("asking the NVIDIA driver");
  return gpus;
}

}  // namespace kolo
