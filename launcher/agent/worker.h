#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/loop.h"
#include "base/process.h"
#include "launcher/agent/cgroup.h"
#include "launcher/agent/protocol.h"

namespace corro::launcher::agent {

// A worker as its agent has it: a process group, and two pipes that are read while there is room
// for more output.
//
// Owned by the agent; belongs to its loop.
class Worker {
 public:
  struct Events {
    std::function<void(Stream, ByteView)> on_output;
    std::function<void(std::size_t)> on_taken;  // so many bytes of its input
  };

  static Result<std::unique_ptr<Worker>> start(Loop&, Spawner&, StatusBoard&, Start, Events);

  // Gives it a cgroup of its own below that one.  Whether that can be had.
  bool enter_cgroup(const Cgroup& home);

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }

  // What it has said about what it does, also after its death.
  Status said() const { return page_ ? page_->read() : Status{}; }
  const WorkerCgroup* cgroup() const { return cgroup_ ? &*cgroup_ : nullptr; }

  void signal(int signo) const;
  void feed(ByteView, bool ends);
  void set_reading(bool);

  // The process has ended.  What it had written is passed on now; a descendant of its may hold the
  // pipes open and write more later.
  void ended();

 private:
  struct Source {
    Stream stream;
    Fd fd;
    Loop::Watch watch;
  };

  Worker(Loop&, Events);
  bool read_once(Source&);
  void write_input();
  void close_input();

  Loop& loop_;
  Events events_;
  std::uint32_t id_ = 0;
  pid_t pid_ = 0;
  bool running_ = true;
  Source sources_[2];

  std::optional<StatusPage> page_;
  std::optional<WorkerCgroup> cgroup_;

  // Closed when all of it is written, or the worker does not want any more.
  Fd input_;
  Loop::Watch input_watch_;
  Bytes waiting_;  // to be written to it
  bool input_ends_ = false;
};

}  // namespace corro::launcher::agent
