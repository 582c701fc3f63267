#include "base/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

namespace kolo {

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

// What execve is called with, and what is prepared beforehand for the way there.
struct Prepared {
  const std::vector<int>& signals;  // to be reset
  std::string program;
  std::vector<char*> argv, env;
  CpuMask cpus;
};

// What went wrong between vfork and exec.
struct Trouble {
  enum class Step { preparing, binding, entering_cwd, executing };
  Step step = Step::preparing;
  int number = 0;  // errno
};

// All that happens between vfork and exec.  It shares the parent's memory and must not allocate,
// lock or return.  `trouble` is a pipe that exec closes: what is not written to it went well.  The
// shared memory would do as well, but under a sanitizer vfork is a fork.
[[noreturn]] void become(const SpawnRequest& request, const Prepared& prepared, pid_t parent,
                         int trouble) {
  const auto fail = [&trouble](Trouble::Step step) {
    const Trouble what{step, errno};
    (void)!::write(trouble, &what, sizeof what);
    ::_exit(127);
  };
  const auto preparing = Trouble::Step::preparing;
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (const int signo : prepared.signals) ::sigaction(signo, &standard, nullptr);

  if (request.new_session ? ::setsid() < 0 : ::setpgid(0, 0) < 0) fail(preparing);
  if (request.death_signal != 0) {
    if (::prctl(PR_SET_PDEATHSIG, request.death_signal) != 0) fail(preparing);
    if (::getppid() != parent) ::_exit(127);  // it died before we could ask to be told
  }
  if (!prepared.cpus.apply()) fail(Trouble::Step::binding);
  // Linux with Yama lets a process be traced by those it descends from, and by whom it names with
  // all that descends from that one.  Elsewhere there is nothing to ask for.
  if (request.may_be_examined) ::prctl(PR_SET_PTRACER, parent);
  // Above 2 first: a source may be one of the numbers that another target takes.
  std::array<int, 3> sources = {request.in, request.out, request.err};
  for (int& fd : sources)
    if (fd >= 0 && (fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0) fail(preparing);
  for (int target = 0; target < 3; ++target)
    if (sources[target] >= 0 && ::dup2(sources[target], target) < 0) fail(preparing);
  if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) fail(preparing);
  if (request.umask) ::umask(*request.umask);
  if (descriptors_of_children) ::setrlimit(RLIMIT_NOFILE, &*descriptors_of_children);
  if (request.extra >= 0) {
    if (trouble == kExtraFd && (trouble = ::fcntl(trouble, F_DUPFD_CLOEXEC, kExtraFd + 1)) < 0)
      ::_exit(127);
    if (request.extra != kExtraFd)
      ::dup2(request.extra, kExtraFd);
    else
      ::fcntl(kExtraFd, F_SETFD, 0);
  }
  if (!request.cwd.empty() && ::chdir(request.cwd.c_str()) != 0) fail(Trouble::Step::entering_cwd);

  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(prepared.program.c_str(), prepared.argv.data(), prepared.env.data());
  fail(Trouble::Step::executing);
  ::_exit(127);
}

// vfork and not posix_spawn, which cannot ask for a parent-death signal; not fork, which takes
// tens of milliseconds in a parent with much memory.  No signal handler of ours may run in the
// child, so all are blocked around it.
pid_t vfork_and_exec(const SpawnRequest& request, const Prepared& prepared, int trouble) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid();
  const pid_t pid = ::vfork();
  if (pid == 0) become(request, prepared, parent, trouble);
  const int number = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = number;
  return pid;
}

Error error_for(const Trouble& trouble, const SpawnRequest& request, const std::string& program) {
  switch (trouble.step) {
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

// Asked of the kernel one by one, which takes 20 us: as much as the rest of the way to exec.
Spawner::Spawner() {
  for (int signo = 1; signo < NSIG; ++signo) {
    struct sigaction now {};
    if (::sigaction(signo, nullptr, &now) == 0 && now.sa_handler != SIG_DFL)
      signals_.push_back(signo);
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

Result<pid_t> Spawner::spawn(const SpawnRequest& request) {
  if (request.argv.empty()) return Error(Errc::invalid_input, "no program was named");
  if (std::any_of(request.cpus.begin(), request.cpus.end(),
                  [](int cpu) { return cpu < 0 || cpu >= kMostCpus; }))
    return Error(Errc::invalid_input, "a CPU has a number that no CPU has");
  const auto program = program_for(request);
  if (!program) return program.error();
  auto trouble = make_pipe();
  if (!trouble) return trouble.error();
  const Prepared prepared{signals_, *program, pointers_to(request.argv), pointers_to(request.env),
                          CpuMask(request.cpus)};
  const pid_t pid = vfork_and_exec(request, prepared, trouble->write_end.get());
  if (pid < 0) return Error::from_errno("starting " + *program);

  trouble->write_end.reset();
  Trouble what;
  std::array<std::uint8_t, sizeof what> raw;
  const auto told = read_some(trouble->read_end.get(), raw);
  if (told && told->bytes == 0) return pid;
  ::waitpid(pid, nullptr, 0);
  std::memcpy(&what, raw.data(), sizeof what);
  return error_for(what, request, *program);
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

}  // namespace kolo
