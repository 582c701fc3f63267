#include "launcher/agent/evidence.h"

#include <dirent.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "base/text.h"
#include "launcher/agent/small_file.h"
#include "launcher/agent/stack.h"

namespace corro::launcher::agent {

using namespace std::chrono_literals;

namespace {

constexpr Duration kStackTime = 500ms;  // for one worker
constexpr unsigned kAtOnce = 8;

std::string proc(pid_t pid, const char* what) {
  return fmt::format("/proc/{}/{}", pid, what);
}

std::string link_of(const std::string& path) {
  std::array<char, 4096> target;
  const ssize_t n = ::readlink(path.c_str(), target.data(), target.size());
  return n > 0 ? std::string(target.data(), static_cast<std::size_t>(n)) : std::string();
}

std::uint64_t number(std::string_view text) {
  return static_cast<std::uint64_t>(std::max(0LL, parse_int(text).value_or(0)));
}

// The fields of stat after the name, which may hold anything, a parenthesis too.
struct Stat {
  std::string_view name;
  std::vector<std::string_view> fields;  // the state first
};
Stat cut_stat(std::string_view text) {
  const auto open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open || close + 2 > text.size()) return {};
  return {text.substr(open + 1, close - open - 1), split(text.substr(close + 2), ' ')};
}
enum StatField {
  state,
  parent,
  user_time = 11,
  system_time = 12,
  thread_count = 17,
  start_time = 19,
  kStatFields
};

// The number behind "VmRSS:"; units and blanks are left out.
std::string_view value_of(std::string_view status, std::string_view name) {
  for (auto line : split(status, '\n')) {
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line.substr(0, line.find(' '));
  }
  return {};
}

bool catches(std::string_view mask, int signo) {
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(mask.data(), mask.data() + mask.size(), bits, 16);
  return error == std::errc() && (bits >> (signo - 1) & 1) != 0;
}

struct Call {
  long number;
  const char* name;
};
// Those in which a worker is found waiting.
constexpr Call kCalls[] = {
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_pread64, "pread"},
    {SYS_pwrite64, "pwrite"},
    {SYS_openat, "openat"},
    {SYS_close, "close"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_ioctl, "ioctl"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect"},
    {SYS_epoll_pwait, "epoll_wait"},
    {SYS_futex, "futex"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_connect, "connect"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept"},
    {SYS_recvfrom, "recv"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_sendto, "send"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_rt_sigsuspend, "sigsuspend"},
    {SYS_rt_sigtimedwait, "sigtimedwait"},
    {SYS_munmap, "munmap"},
    {SYS_madvise, "madvise"},
    {SYS_exit_group, "exit"},
    {SYS_restart_syscall, "restart_syscall"},  // a timed wait that a stop or a look interrupted
#ifdef SYS_poll
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_open, "open"},
    {SYS_pause, "pause"},
#endif
};

// The call if we may trace it, else the function of the kernel if it tells.
std::string wait_of(pid_t pid) {
  if (const auto call = read_small(proc(pid, "syscall"))) {
    auto name = parse_syscall(*call);
    if (!name.empty()) return name;
  }
  const auto function = read_small(proc(pid, "wchan"), 64);
  return function && *function != "0" ? *function : "";
}

bool waits_for_a_child(std::string_view wait) {
  return wait == "wait4" || wait == "waitid" || wait == "do_wait";
}

// What can be read without stopping anybody.
Evidence look_at(pid_t pid) {
  Evidence evidence;
  evidence.pid = pid;
  const auto stat = read_small(proc(pid, "stat"));
  if (!stat) return evidence;
  parse_stat(*stat, evidence);
  if (const auto status = read_small(proc(pid, "status"))) parse_status(*status, evidence);
  if (evidence.state == 'S' || evidence.state == 'D') evidence.waits_in = wait_of(pid);
  const std::string program = link_of(proc(pid, "exe"));
  evidence.python = std::string_view(program).substr(program.rfind('/') + 1).starts_with("python");
  return evidence;
}

// Who is whose child, all over the machine: one look for all workers.
class Family {
 public:
  Family() {
    const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
    while (const dirent* entry = processes ? ::readdir(processes.get()) : nullptr) {
      const auto pid = parse_int(entry->d_name);
      const auto stat = pid ? read_small(proc(static_cast<pid_t>(*pid), "stat")) : std::nullopt;
      const auto fields = stat ? cut_stat(*stat).fields : std::vector<std::string_view>();
      if (fields.size() > kStatFields && fields[state] != "Z")
        children_.emplace(number(fields[parent]), static_cast<pid_t>(*pid));
    }
  }

  pid_t only_child_of(pid_t pid) const {
    const auto [begin, end] = children_.equal_range(pid);
    return begin != end && std::next(begin) == end ? begin->second : 0;
  }

  std::uint32_t descendants_of(pid_t pid) const {
    std::vector<pid_t> all = {pid};
    // It may have changed while we read, so a circle is possible.
    for (std::size_t i = 0; i < all.size() && all.size() <= children_.size(); ++i) {
      const auto [begin, end] = children_.equal_range(all[i]);
      for (auto child = begin; child != end; ++child) all.push_back(child->second);
    }
    return static_cast<std::uint32_t>(all.size() - 1);
  }

 private:
  std::multimap<pid_t, pid_t> children_;
};

// A shell, a wrapper or time(1) has one child and waits for it, or is small beside it.  A Python
// that computes and has one helper (multiprocessing's tracker) is neither.
Evidence find_who_works(pid_t worker, const Family& family) {
  constexpr int kDeep = 16;
  Evidence evidence = look_at(worker);
  for (int depth = 0; depth < kDeep && evidence.state != 0; ++depth) {
    const pid_t child = family.only_child_of(evidence.pid);
    if (child == 0) break;
    Evidence next = look_at(child);
    const bool works =
        waits_for_a_child(evidence.waits_in) || next.rss_bytes > 2 * evidence.rss_bytes;
    if (next.state == 0 || !works) break;
    evidence = std::move(next);
  }
  evidence.descendants = family.descendants_of(worker);
  return evidence;
}

constexpr std::uint16_t kResult = 1;

// In one piece, so that helpers may write to the same pipe.
void send(int results, std::size_t index, Evidence evidence) {
  Bytes frame;
  for (;;) {
    frame.clear();
    append_frame(frame, {kResult, index, encode(evidence)});
    if (frame.size() <= kEvidenceBytes || evidence.frames.empty()) break;
    evidence.frames.pop_back();
  }
  (void)!::write(results, frame.data(), frame.size());
}

void end_with(pid_t above) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != above) ::_exit(0);
}

// SIGALRM ends the process, wherever it hangs.
void end_after(Duration time) {
  const auto us = std::max<std::int64_t>(
      1, std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  const itimerval timer{{}, {us / 1'000'000, us % 1'000'000}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

// The helper's part.
void read_stack(const StackReader& stacks, int results, std::size_t index, Evidence evidence) {
  if (!evidence.python)
    if (const auto maps = read_small(proc(evidence.pid, "maps"), 16 << 20))
      evidence.python = maps_have_python(*maps);
  evidence.frames = stacks.frames(evidence.pid, kFramesMost);
  send(results, index, std::move(evidence));
}

bool can_be_stopped(const Evidence& evidence) {
  return evidence.state != 0 && evidence.state != 'Z' && evidence.state != 'X';
}

// The examiner's part.  First what costs nothing, for all; then the stacks, as far as time goes.
void run_examiner(const std::vector<pid_t>& workers, Deadline deadline, int results) {
  ::prctl(PR_SET_NAME, "corro-examiner");
  const Family family;
  std::vector<Evidence> found;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    found.push_back(find_who_works(workers[i], family));
    send(results, i, found.back());
  }
  const StackReader stacks = StackReader::open();
  const unsigned most = std::clamp(std::thread::hardware_concurrency(), 1U, kAtOnce);
  const pid_t self = ::getpid();
  unsigned running = 0;
  for (std::size_t i = 0; i < found.size() && !deadline.passed(); ++i) {
    if (!can_be_stopped(found[i])) continue;
    if (running == most && ::waitpid(-1, nullptr, 0) > 0) --running;
    const pid_t helper = ::fork();
    if (helper == 0) {
      end_with(self);
      end_after(std::min(kStackTime, deadline.at - Clock::now()));
      read_stack(stacks, results, i, std::move(found[i]));
      ::_exit(0);
    }
    if (helper > 0) ++running;
  }
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

// A child with nothing of ours but the pipe, which is 3 then: the agent's stream must not stay open
// because of it.
[[noreturn]] void become_examiner(const std::vector<pid_t>& workers, Deadline deadline, int results,
                                  pid_t above) {
  end_with(above);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signo : {SIGCHLD, SIGALRM, SIGPIPE}) ::signal(signo, SIG_DFL);
  if (results != 3) ::dup2(results, 3);
  ::close_range(4, ~0U, 0);
  run_examiner(workers, deadline, 3);
  ::_exit(0);
}

}  // namespace

std::string_view Evidence::state_text() const {
  switch (state) {
    case 0:
      return "gone";
    case 'R':
      return "running";
    case 'S':
      return "sleeping";
    case 'D':
      return "waiting for the disk";
    case 'T':
      return "stopped";
    case 't':
      return "stopped by a debugger";
    case 'Z':
    case 'X':
      return "ended";
    default:
      return "idle";
  }
}

void parse_stat(std::string_view stat, Evidence& evidence) {
  const auto [name, fields] = cut_stat(stat);
  if (fields.size() < kStatFields || fields[state].size() != 1) return;
  evidence.command = name;
  evidence.state = fields[state][0];
  evidence.started = number(fields[start_time]);
  evidence.threads = static_cast<std::uint32_t>(number(fields[thread_count]));
  const auto ticks = number(fields[user_time]) + number(fields[system_time]);
  evidence.cpu_ms = ticks * 1000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
}

void parse_status(std::string_view status, Evidence& evidence) {
  evidence.rss_bytes = number(value_of(status, "VmRSS:")) * 1024;
  evidence.peak_rss_bytes = number(value_of(status, "VmHWM:")) * 1024;
  evidence.has_python_dump = catches(value_of(status, "SigCgt:"), python_dump_signal());
}

std::string parse_syscall(std::string_view syscall) {
  const auto wanted = parse_int(syscall.substr(0, syscall.find(' ')));
  const auto* const call = std::find_if(std::begin(kCalls), std::end(kCalls),
                                        [&](const Call& c) { return wanted == c.number; });
  return call == std::end(kCalls) ? "" : call->name;
}

bool maps_have_python(std::string_view maps) {
  return maps.find("/libpython") != maps.npos;
}

Examination::Examination(std::vector<pid_t> workers, Deadline deadline) : deadline_(deadline) {
  for (const pid_t worker : workers) found_.emplace_back().pid = worker;
  auto pipe = make_pipe();
  if (!pipe || !set_nonblocking(pipe->read_end.get())) return;
  const pid_t above = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become_examiner(workers, deadline, pipe->write_end.get(), above);
  if (pid_ < 0) return;
  // It is our child and nobody has reaped it yet, so the number is its own.  Later the agent's
  // reaper may have been quicker than we are.
  examiner_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  results_ = std::move(pipe->read_end);
}

Examination::~Examination() {
  end();
}

bool Examination::advance() {
  std::array<std::uint8_t, 16 << 10> buffer;
  while (results_) {
    const auto moved = read_some(results_.get(), buffer);
    if (moved && moved->again) break;
    if (!moved || moved->bytes == 0) {
      end();
      return true;
    }
    const auto took = reader_.feed(ByteView(buffer).first(moved->bytes),
                                   [this](const Frame& frame) -> Result<Unit> {
                                     auto evidence = decode<Evidence>(frame.body);
                                     if (!evidence) return evidence.error();
                                     if (frame.seq < found_.size())
                                       found_[frame.seq] = std::move(*evidence);
                                     return Unit{};
                                   });
    if (!took) end();
  }
  if (deadline_.passed()) end();
  return !results_;
}

std::vector<Evidence> Examination::take() {
  advance();
  end();
  return std::move(found_);
}

void Examination::end() {
  results_.reset();
  if (!examiner_) return;
  ::syscall(SYS_pidfd_send_signal, examiner_.get(), SIGKILL, nullptr, 0);
  examiner_.reset();
  // It is about to end; whoever reaps children gets it, and if that is nobody, we do.
  for (int i = 0; i < 100 && ::waitpid(pid_, nullptr, WNOHANG) == 0; ++i)
    std::this_thread::sleep_for(1ms);
}

std::vector<Evidence> examine_all(std::span<const pid_t> workers, Deadline deadline) {
  Examination examination({workers.begin(), workers.end()}, deadline);
  while (!examination.advance()) {
    pollfd fd{examination.fd(), POLLIN, 0};
    ::poll(&fd, 1, deadline.poll_timeout_ms());
  }
  return examination.take();
}

Evidence examine(pid_t worker, Deadline deadline) {
  return examine_all({&worker, 1}, deadline).front();
}

// It need not be a child of ours, so its number may have been given away since.  What the pidfd
// stands for is settled first, then whether that is the one.
void ask_for_python_stacks(const Evidence& evidence) {
  if (!evidence.has_python_dump) return;
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, evidence.pid, 0)));
  Evidence now;
  if (const auto stat = read_small(proc(evidence.pid, "stat"))) parse_stat(*stat, now);
  if (process && now.started == evidence.started)
    ::syscall(SYS_pidfd_send_signal, process.get(), python_dump_signal(), nullptr, 0);
}

}  // namespace corro::launcher::agent
