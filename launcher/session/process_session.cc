#include "launcher/session/process_session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 1s;  // with a child or a stream that should have ended

// The guard passes on how its agent ended, as a shell would.
std::string text_of_end(const ExitStatus& status) {
  if (status.ok()) return "it closed the connection";
  if (status.signo) return "its guard " + status.text();
  const auto agent =
      status.code > 128 ? ExitStatus::killed(status.code - 128) : ExitStatus::exited(status.code);
  return "its agent " + agent.text();
}

}  // namespace

Result<std::unique_ptr<Session>> ProcessSession::start(Loop& loop, Spawner& spawner,
                                                       const Command& command, Events events) {
  auto down = make_pipe(), up = make_pipe();
  if (!down) return down.error();
  if (!up) return up.error();
  widen(*up, static_cast<int>(agent::kOutputWindow));
  for (const Fd* mine : {&down->write_end, &up->read_end})
    if (auto set = set_nonblocking(mine->get()); !set) return set.error();

  const auto pid = spawner.spawn({.argv = command.argv,
                                  .env = own_environment(),
                                  .cwd = {},
                                  .in = down->read_end.get(),
                                  .out = up->write_end.get(),
                                  .err = -1,
                                  .new_session = true,
                                  .death_signal = 0});
  if (!pid) return pid.error();
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  if (!pidfd) return Error::from_errno("watching a process");
  return std::unique_ptr<Session>(
      new ProcessSession(loop, *pid, std::move(pidfd), std::move(up->read_end),
                         std::move(down->write_end), std::move(events)));
}

ProcessSession::ProcessSession(Loop& loop, pid_t pid, Fd watchable, Fd from_agent, Fd to_agent,
                               Events events)
    : loop_(loop), pid_(pid), pidfd_(std::move(watchable)), events_(std::move(events)) {
  const auto on_frame = [this](const Frame& frame) -> Result<Unit> {
    const auto message = decode_frame<agent::Up>(frame);
    if (!message) return message.error();
    events_.on_message(*message, frame.seq);
    return Unit{};
  };
  channel_ = std::make_unique<Channel>(
      loop_, std::move(from_agent), std::move(to_agent), agent::kUpLimit, std::nullopt,
      Channel::Events{.on_frame = on_frame,
                      .on_end = [this](const Error& why) { on_stream_end(why); },
                      .on_proved = {}});
  child_watch_ = loop_.watch(pidfd_.get(), Ready::read, [this] { on_child_end(); });
}

// Only a job that failed before it ran gets here with a child that lives: its stdin ends with us.
ProcessSession::~ProcessSession() {
  if (child_end_) return;
  channel_.reset();
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

void ProcessSession::flush() {
  constexpr auto kMoment = 200ms;
  if (channel_) channel_->flush(Deadline::in(kMoment));
}

void ProcessSession::terminate() {
  if (child_end_) return;
  ::kill(pid_, SIGTERM);
  patience_ = loop_.at(loop_.now() + kPatience, [this] {
    if (!child_end_) ::kill(pid_, SIGKILL);
  });
}

// The channel may not be destroyed inside its own event, so the end is told from the loop.
void ProcessSession::on_stream_end(const Error& why) {
  stream_end_ = why;
  if (!child_end_)
    patience_ = loop_.at(loop_.now() + kPatience, [this] { terminate(); });
  else
    loop_.post([this] { end_if_both(); });
}

void ProcessSession::on_child_end() {
  const auto ended = reap(pid_);
  if (!ended) return;
  child_end_ = ended->status;
  child_watch_ = {};
  // An agent that lost its guard cleans up and hangs up by itself, unless it cannot run.
  patience_ = loop_.at(loop_.now() + kPatience, [this] {
    stream_end_ = Error(Errc::timed_out, text_of_end(*child_end_) + ", and its agent is stuck");
    end_if_both();
  });
  end_if_both();
}

void ProcessSession::end_if_both() {
  if (!stream_end_ || !child_end_ || !channel_) return;
  patience_ = {};
  channel_.reset();
  events_.on_end(stream_end_->code() == Errc::closed ? text_of_end(*child_end_)
                                                     : stream_end_->text());
}

}  // namespace corro::launcher
