#include "base/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include "base/fd.h"
#include "base/text.h"

// glibc's clone by the name that sanitizers do not know: to TSan's, every child is a fork, whose
// memory is not ours any more.
extern "C" int __clone(int (*)(void*), void* stack, int flags, void*, ...);

namespace corro {

namespace {

// Where PATH is unset, as in glibc.
constexpr std::string_view kDefaultPath = "/bin:/usr/bin";

std::string_view value_in(const std::vector<std::string>& env, std::string_view name,
                          std::string_view otherwise) {
  for (const std::string& entry : env)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return std::string_view(entry).substr(name.size() + 1);
  return otherwise;
}

std::string path_from(std::string_view folder, std::string_view name) {
  if (folder.empty() || name.starts_with('/')) return std::string(name);
  return fmt::format("{}/{}", folder, name);
}

bool is_file(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

// What those get whom we start, if it is not what we have.
std::optional<rlimit> descriptors_of_children;

// More than any kernel counts.
constexpr int kMostCpus = 1 << 16;

// CPUs as the kernel wants them, with room for any number.
class CpuMask {
 public:
  explicit CpuMask(const std::vector<int>& cpus) {
    if (cpus.empty()) return;
    const auto highest = static_cast<std::size_t>(*std::max_element(cpus.begin(), cpus.end()));
    sets_.resize(highest / CPU_SETSIZE + 1);
    for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes(), sets_.data());
  }

  // Whether that could be done; true if there is nothing to do.  Only a system call.
  bool apply() const { return sets_.empty() || ::sched_setaffinity(0, bytes(), sets_.data()) == 0; }

 private:
  std::size_t bytes() const { return sets_.size() * sizeof(cpu_set_t); }

  std::vector<cpu_set_t> sets_;
};

// The instrumentation of a function that does not return would be left behind in our memory.
#define CORRO_UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

// What went wrong between clone and exec.
struct Trouble {
  enum class Step { none, preparing, binding, entering_cwd, executing };
  Step step = Step::none;
  int number = 0;  // errno
};

// What a child needs on its way to exec, prepared beforehand: it shares our memory until then, and
// may only look at it and leave word of its trouble.
struct Passage {
  const SpawnRequest& request;
  const std::vector<int>& signals;  // to be reset
  const std::string& program;
  std::vector<char*> argv, env;
  CpuMask cpus;
  std::array<int, kGiven> given;  // become 0, 1, 2 and kExtraFd; -1: nothing is
  int highest;                    // of all that it is to have
  pid_t parent;
  Trouble trouble;
};

[[noreturn]] CORRO_UNSANITIZED void leave() {
  for (;;) ::syscall(SYS_exit_group, 127);
}

[[noreturn]] CORRO_UNSANITIZED void fail(Passage& passage, Trouble::Step step) {
  passage.trouble = {step, errno};
  leave();
}

// For the kernel, all of whose actions and masks are of that size; zeros are the default and none.
struct KernelSignals {
  static constexpr std::size_t kMaskBytes = 8;
  std::array<unsigned long, 4> action{};
  std::uint64_t mask = 0;
};

// All that happens between clone and exec, on a stack of its own while we wait.  It must not
// allocate or lock.  Plain system calls where a sanitizer has a wrapper that keeps books: they
// would be the parent's.
CORRO_UNSANITIZED int become(void* what) {
  Passage& passage = *static_cast<Passage*>(what);
  const SpawnRequest& request = passage.request;
  const auto preparing = Trouble::Step::preparing;
  const KernelSignals standard;
  for (const int signo : passage.signals)
    ::syscall(SYS_rt_sigaction, signo, &standard.action, nullptr, KernelSignals::kMaskBytes);

  if (request.new_session ? ::setsid() < 0 : ::setpgid(0, 0) < 0) fail(passage, preparing);
  if (request.death_signal != 0) {
    if (::prctl(PR_SET_PDEATHSIG, request.death_signal) != 0) fail(passage, preparing);
    if (::getppid() != passage.parent) leave();  // it died before we could ask to be told
  }
  if (!passage.cpus.apply()) fail(passage, Trouble::Step::binding);
  // Linux with Yama lets a process be traced by those it descends from, and by whom it names with
  // all that descends from that one.  Elsewhere there is nothing to ask for.
  if (request.may_be_examined) ::prctl(PR_SET_PTRACER, passage.parent);

  // The descriptors were the parent's own until here.
  const auto beyond = static_cast<unsigned>(passage.highest) + 1;
  if (::close_range(beyond, ~0U, CLOSE_RANGE_UNSHARE) != 0) fail(passage, preparing);
  for (int target = 0; target < 3; ++target)
    if (passage.given[target] >= 0 && ::syscall(SYS_dup3, passage.given[target], target, 0) < 0)
      fail(passage, preparing);
  if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) fail(passage, preparing);
  if (request.umask) ::umask(*request.umask);
  if (descriptors_of_children) ::setrlimit(RLIMIT_NOFILE, &*descriptors_of_children);
  if (const int extra = passage.given[3]; extra == kExtraFd)
    ::fcntl(kExtraFd, F_SETFD, 0);
  else if (extra >= 0)
    ::syscall(SYS_dup3, extra, kExtraFd, 0);
  if (!request.cwd.empty() && ::chdir(request.cwd.c_str()) != 0)
    fail(passage, Trouble::Step::entering_cwd);

  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &standard.mask, nullptr, KernelSignals::kMaskBytes);
  ::execve(passage.program.c_str(), passage.argv.data(), passage.env.data());
  fail(passage, Trouble::Step::executing);
}

// Before Linux 6.11 a table that is cut off while it is shared may keep marks of what was beyond: a
// program with more than 64 descriptors then gets numbers above all of ours.
bool may_share_descriptors() {
  utsname name;
  return ::uname(&name) == 0 && parse_version(name.release) >= Version{6, 11};
}

// clone and not posix_spawn, which cannot ask for a parent-death signal; not fork, which takes
// tens of milliseconds in a parent with much memory; and not vfork, which copies all descriptors to
// a child that will close them: at 256 workers that takes longer than the rest of the way to exec.
// No signal handler of ours may run in the child, so all are blocked around it.
pid_t clone_and_exec(Passage& passage) {
  static const int sharing = may_share_descriptors() ? CLONE_FILES : 0;
  constexpr std::size_t kStack = 64 << 10;
  alignas(16) std::array<std::byte, kStack> stack;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::__clone(become, stack.data() + stack.size(),
                              CLONE_VM | CLONE_VFORK | sharing | SIGCHLD, &passage);
  const int number = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = number;
  return pid;
}

Error error_for(const Trouble& trouble, const SpawnRequest& request, const std::string& program) {
  switch (trouble.step) {
    case Trouble::Step::none:
    case Trouble::Step::preparing:
      break;
    case Trouble::Step::binding:
      return Error::from_errno(
          fmt::format("binding {} to CPUs {}", program, number_ranges(request.cpus)),
          trouble.number);
    case Trouble::Step::entering_cwd:
      return Error::from_errno("changing to " + request.cwd, trouble.number);
    case Trouble::Step::executing:
      // It was there a moment ago, so what is missing is what it names in its first line.
      if (trouble.number == ENOENT)
        return Error(Errc::unsupported, program + " names an interpreter that is not there");
      return Error(Errc::unsupported,
                   Error::from_errno("executing " + program, trouble.number).text());
  }
  return Error::from_errno("starting " + program, trouble.number);
}

std::optional<pid_t> parent_of(pid_t pid) {
  const Fd stat(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<std::uint8_t, 512> buffer;
  const auto moved = stat ? read_some(stat.get(), buffer) : Result<Moved>(Moved{});
  if (!moved || moved->bytes == 0) return std::nullopt;
  // "pid (name) state ppid …"; a name may hold anything, a parenthesis too.
  const std::string_view text = text_of(ByteView(buffer).first(moved->bytes));
  const auto fields = split(text.substr(std::min(text.rfind(')'), text.size())), ' ');
  if (fields.size() < 3) return std::nullopt;
  const auto parent = parse_int(fields[2]);
  return parent ? std::optional<pid_t>(static_cast<pid_t>(*parent)) : std::nullopt;
}

std::uint64_t milliseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1000 +
         static_cast<std::uint64_t>(time.tv_usec) / 1000;
}

Usage usage_of(const rusage& usage) {
  return {static_cast<std::uint64_t>(usage.ru_maxrss) * 1024,
          milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime)};
}

}  // namespace

std::string ExitStatus::text() const {
  return signo ? "was killed by " + signal_name(signo) : fmt::format("exited with code {}", code);
}

void want_many_descriptors() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  const rlimit before = limit;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) descriptors_of_children = before;
}

rlimit descriptors_for_children() {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return descriptors_of_children.value_or(limit);
}

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** entry = ::environ; *entry; ++entry) out.emplace_back(*entry);
  return out;
}

Result<std::string> find_program(const std::string& name, const std::vector<std::string>& env,
                                 const std::string& cwd) {
  if (name.empty()) return Error(Errc::not_found, "an empty word names no program");
  const bool has_slash = name.find('/') != name.npos;
  const auto folders = has_slash ? std::vector<std::string_view>{""}
                                 : split(value_in(env, "PATH", kDefaultPath), ':');
  std::optional<std::string> not_executable;
  for (const auto folder : folders) {
    const std::string path =
        path_from(cwd, has_slash || folder.empty() ? name : path_from(folder, name));
    if (!is_file(path)) continue;
    if (::access(path.c_str(), X_OK) == 0) return path;
    if (!not_executable) not_executable = path;
  }
  if (not_executable)
    return Error(Errc::unsupported, fmt::format("{} may not be executed", *not_executable));
  return Error(Errc::not_found, has_slash ? fmt::format("there is no program {}", name)
                                          : fmt::format("there is no program {} in PATH", name));
}

// Signals are asked for one by one, which takes 20 us: as much as the rest of the way to exec.
Spawner::Spawner() {
  for (int signo = 1; signo < NSIG; ++signo) {
    struct sigaction now {};
    if (::sigaction(signo, nullptr, &now) == 0 && now.sa_handler != SIG_DFL)
      signals_.push_back(signo);
  }
  nothing_ = Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (Fd& place : places_) {
    if (nothing_) place = Fd(::fcntl(nothing_.get(), F_DUPFD_CLOEXEC, 3));
    if (!place && no_places_ == 0) no_places_ = errno;
    highest_ = std::max(highest_, place.get());
  }
}

Result<std::string> Spawner::program_for(const SpawnRequest& request) {
  const std::string& name = request.argv.front();
  const auto path = value_in(request.env, "PATH", kDefaultPath);
  if (last_ && last_->name == name && last_->path_variable == path && last_->cwd == request.cwd)
    return last_->program;
  auto program = find_program(name, request.env, request.cwd);
  if (program) last_ = {name, std::string(path), request.cwd, *program};
  return program;
}

// Where the child finds what it is given; -1 stays -1.
Result<std::array<int, kGiven>> Spawner::put_in_place(const SpawnRequest& request,
                                                      const std::string& program) {
  std::array<int, kGiven> fds = {request.in, request.out, request.err, request.extra};
  for (std::size_t i = 0; i < kGiven; ++i)
    if (fds[i] >= 0 && (fds[i] = ::dup3(fds[i], places_[i].get(), O_CLOEXEC)) < 0)
      return Error::from_errno("starting " + program, no_places_ ? no_places_ : errno);
  return fds;
}

void Spawner::empty_places() {
  for (const Fd& place : places_) ::dup3(nothing_.get(), place.get(), O_CLOEXEC);
}

Result<pid_t> Spawner::spawn(const SpawnRequest& request) {
  if (request.argv.empty()) return Error(Errc::invalid_input, "no program was named");
  if (std::any_of(request.cpus.begin(), request.cpus.end(),
                  [](int cpu) { return cpu < 0 || cpu >= kMostCpus; }))
    return Error(Errc::invalid_input, "a CPU has a number that no CPU has");
  const auto program = program_for(request);
  if (!program) return program.error();
  const auto given = put_in_place(request, *program);
  if (!given) {
    empty_places();
    return given.error();
  }
  Passage passage{request,
                  signals_,
                  *program,
                  pointers_to(request.argv),
                  pointers_to(request.env),
                  CpuMask(request.cpus),
                  *given,
                  highest_,
                  ::getpid(),
                  {}};
  const pid_t pid = clone_and_exec(passage);
  const int number = errno;
  empty_places();
  if (pid < 0) return Error::from_errno("starting " + *program, number);
  if (passage.trouble.step == Trouble::Step::none) return pid;
  ::waitpid(pid, nullptr, 0);
  return error_for(passage.trouble, request, *program);
}

// The kernel's waitid, whose fifth argument glibc does not pass on.
std::optional<Ended> reap(std::optional<pid_t> which) {
  siginfo_t info{};
  rusage usage{};
  const auto type = which ? P_PID : P_ALL;
  const auto id = static_cast<id_t>(which.value_or(0));
  if (::syscall(SYS_waitid, type, id, &info, WEXITED | WNOHANG, &usage) != 0 || info.si_pid == 0)
    return std::nullopt;
  return Ended{info.si_pid,
               info.si_code == CLD_EXITED ? ExitStatus::exited(info.si_status)
                                          : ExitStatus::killed(info.si_status),
               usage_of(usage)};
}

std::vector<pid_t> children() {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  std::vector<pid_t> out;
  if (!proc) return out;
  while (const dirent* entry = ::readdir(proc.get())) {
    const auto pid = parse_int(entry->d_name);
    if (pid && parent_of(static_cast<pid_t>(*pid)) == ::getpid())
      out.push_back(static_cast<pid_t>(*pid));
  }
  return out;
}

}  // namespace corro
