#include "launcher/pipe/proxy.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "base/process.h"
#include "base/text.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

constexpr int kFirstCode = 200;  // exit codes from here on are barriers
constexpr std::string_view kFixMark = "to mend it: ";

std::optional<agent::Barrier> barrier_of(int code) {
  const int number = code - kFirstCode;
  if (number < 0 || number > static_cast<int>(last_of(agent::Barrier{}))) return std::nullopt;
  return static_cast<agent::Barrier>(number);
}

std::string text_in(int memory) {
  std::array<char, 2048> text;
  const auto n = ::pread(memory, text.data(), text.size(), 0);
  return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : "";
}

std::optional<Ended> reap_within(pid_t pid, Deadline deadline) {
  for (;;) {
    if (auto ended = reap(pid)) return ended;
    if (deadline.passed()) return std::nullopt;
    std::this_thread::sleep_for(5ms);
  }
}

}  // namespace

// Its stderr goes into memory that nobody has to empty, and is read if it is of interest.
Result<Proxy> Proxy::start(const std::vector<std::string>& argv) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error::from_errno("making a pair of sockets");
  Fd ours(ends[0]), theirs(ends[1]);
  Fd errors(::memfd_create("corro-proxy-errors", MFD_CLOEXEC));
  if (auto set = set_nonblocking(ours.get()); !set) return set.error();
  const auto pid = spawn({.argv = argv,
                          .env = own_environment(),
                          .cwd = {},
                          .in = theirs.get(),
                          .out = theirs.get(),
                          .err = errors.get(),
                          .death_signal = SIGTERM});
  if (!pid) return pid.error();
  return Proxy(*pid, std::move(ours), std::move(errors));
}

Proxy::Proxy(pid_t pid, Fd socket, Fd errors)
    : pid_(pid), socket_(std::move(socket)), errors_(std::move(errors)) {}

Proxy::Proxy(Proxy&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::move(other.socket_)),
      errors_(std::move(other.errors_)) {}

Proxy::~Proxy() {
  if (pid_ < 0) return;
  constexpr auto kMoment = 1s;
  ::kill(pid_, SIGTERM);
  if (reap_within(pid_, Deadline::in(kMoment))) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::optional<agent::Unreached> Proxy::verdict() {
  constexpr auto kMoment = 500ms;
  const auto ended = reap_within(pid_, Deadline::in(kMoment));
  std::string text = text_in(errors_.get());
  if (ended) pid_ = -1;
  while (text.ends_with('\n')) text.pop_back();
  const auto kind = ended ? barrier_of(ended->status.code) : std::nullopt;
  if (text.empty() && !kind) return std::nullopt;
  const auto mark = text.find(kFixMark);
  if (!kind || mark == text.npos) return agent::Unreached{agent::Barrier::unreachable, text, ""};
  return agent::Unreached{*kind, text.substr(0, text.find('\n')),
                          text.substr(mark + kFixMark.size())};
}

int tell_pipe(const agent::Unreached& barrier) {
  const std::string text = fmt::format("{}\n{}{}\n", barrier.why, kFixMark, barrier.fix);
  (void)!::write(STDERR_FILENO, text.data(), text.size());
  return kFirstCode + static_cast<int>(barrier.kind);
}

}  // namespace corro::launcher
