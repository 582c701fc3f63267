#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/channel.h"
#include "base/loop.h"
#include "base/process.h"
#include "launcher/session/session.h"

namespace corro::launcher {

// A command whose stdin and stdout are a host's agent.
struct Command {
  std::vector<std::string> argv;
  bool operator==(const Command&) const = default;
};

// A session that is a child process: the guard of this machine's agent, or a pipe to another host.
//
// Belongs to the loop.
class ProcessSession : public Session {
 public:
  static Result<std::unique_ptr<Session>> start(Loop&, Spawner&, const Command&, Events);
  ~ProcessSession() override;

  void send(const agent::Down& message) override {
    if (channel_) channel_->send(message);
  }
  void flush() override;
  void terminate() override;

 private:
  ProcessSession(Loop&, pid_t, Fd watchable, Fd from_agent, Fd to_agent, Events);
  void on_stream_end(const Error&);
  void on_child_end();
  void end_if_both();

  Loop& loop_;
  pid_t pid_;
  Fd pidfd_;
  Events events_;
  std::unique_ptr<Channel> channel_;  // until both have ended
  Loop::Watch child_watch_;
  Loop::Timer patience_;
  std::optional<Error> stream_end_;
  std::optional<ExitStatus> child_end_;
};

}  // namespace corro::launcher
