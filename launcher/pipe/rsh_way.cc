#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "base/process.h"
#include "base/text.h"
#include "launcher/pipe/rsh_command.h"
#include "launcher/pipe/way.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

// A command of the user's that runs another on a host.
class CommandWire final : public Wire {
 public:
  CommandWire(pid_t pid, Fd to, Fd from, Fd errors)
      : pid_(pid), to_(std::move(to)), from_(std::move(from)), errors_(std::move(errors)) {}

  ~CommandWire() override {
    if (ended_) return;
    to_.reset();
    if (exit_code(Deadline::in(kMoment))) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  Result<Moved> read_some(MutByteView into) override {
    listen_aside();
    return corro::read_some(from_.get(), into);
  }
  Result<Moved> write_some(ByteView bytes) override {
    listen_aside();
    return corro::write_some(to_.get(), bytes);
  }
  void end_writing() override { to_.reset(); }

  std::vector<Interest> interests(bool reading, bool writing) const override {
    std::vector<Interest> out;
    if (reading) out.push_back({from_.get(), true, false});
    if (writing) out.push_back({to_.get(), false, true});
    if (errors_) out.push_back({errors_.get(), true, false});
    return out;
  }

  std::string take_asides() override {
    listen_aside();
    return std::exchange(asides_, {});
  }

  std::optional<int> exit_code(Deadline deadline) override {
    while (!ended_) {
      if (const auto ended = reap(pid_)) ended_ = ended->status.shell_code();
      if (ended_ || deadline.passed()) break;
      listen_aside();
      ::usleep(5000);
    }
    return ended_;
  }

 private:
  static constexpr auto kMoment = 1s;

  // What cannot be written to stderr holds up the command.
  void listen_aside() {
    Bytes text(4096);
    const auto got = errors_ ? corro::read_some(errors_.get(), text) : Moved{};
    if (!got || (got->bytes == 0 && !got->again)) errors_.reset();
    if (got && asides_.size() < kAsidesKept) asides_ += text_of(ByteView(text).first(got->bytes));
  }

  pid_t pid_;
  Fd to_, from_, errors_;
  std::string asides_;
  std::optional<int> ended_;
};

Result<std::unique_ptr<Wire>> start_command(const std::vector<std::string>& argv) {
  auto down = make_pipe(), up = make_pipe(), errors = make_pipe();
  for (auto* pipe : {&down, &up, &errors})
    if (!*pipe) return pipe->error();
  for (const Fd* mine : {&down->write_end, &up->read_end, &errors->read_end})
    if (auto set = set_nonblocking(mine->get()); !set) return set.error();
  const auto pid = spawn({.argv = argv,
                          .env = own_environment(),
                          .cwd = {},
                          .in = down->read_end.get(),
                          .out = up->write_end.get(),
                          .err = errors->write_end.get(),
                          .death_signal = SIGTERM});
  if (!pid) return pid.error();
  return std::unique_ptr<Wire>(std::make_unique<CommandWire>(
      *pid, std::move(down->write_end), std::move(up->read_end), std::move(errors->read_end)));
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + shell_word(word);
  return out;
}

}  // namespace

ReachResult<Way> rsh_way(const Target& target) {
  auto argv = rsh_command(target);
  const TimePoint began = Clock::now();
  auto wire = start_command(argv);
  argv.pop_back();
  if (!wire)
    return agent::Unreached{
        agent::Barrier::unreachable,
        fmt::format("{}: '{}': {}", target.host, joined(argv), wire.error().text()),
        joined(argv) + " true"};
  Way way{std::move(*wire),
          {},
          fmt::format("{} (by '{}')", target.host, joined(argv)),
          joined(argv),
          true};
  way.reached.connect_us = microseconds_since(began);
  return way;
}

}  // namespace corro::launcher
