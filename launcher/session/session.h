#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/channel.h"
#include "base/loop.h"
#include "base/process.h"
#include "launcher/agent/protocol.h"

namespace corro::launcher {

// A command whose stdin and stdout are a host's agent.
struct Command {
  std::vector<std::string> argv;
  bool operator==(const Command&) const = default;
};

// One host's agent, as the launcher sees it: a child process that speaks frames.
//
// Ends once, when the child is gone and all it said has been heard; then nothing more comes.
// Owned by the job's driver; belongs to the loop.  Not to be destroyed inside its own events.
class Session {
 public:
  struct Events {
    std::function<void(const agent::Up&, std::uint64_t seq)> on_message;
    std::function<void(const std::string& why)> on_end;
  };

  static Result<std::unique_ptr<Session>> start(Loop&, Spawner&, const Command&, Events);
  ~Session();

  void send(const agent::Down& message) {
    if (channel_) channel_->send(message);
  }

  // Waits a moment for what was sent to be on its way.
  void flush();

  // Makes the child end, and with it all that descends from it.
  void terminate();

 private:
  Session(Loop&, pid_t, Fd watchable, Fd from_agent, Fd to_agent, Events);
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
