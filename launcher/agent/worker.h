#pragma once

#include <functional>
#include <memory>

#include "base/fd.h"
#include "base/loop.h"
#include "launcher/agent/protocol.h"

namespace kolo::agent {

// A worker as its agent has it: a process group, and two pipes that are read while there is room
// for more output.
//
// Owned by the agent; belongs to its loop.
class Worker {
 public:
  using OnOutput = std::function<void(Stream, ByteView)>;

  static Result<std::unique_ptr<Worker>> start(Loop&, const Start&, OnOutput);

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }

  void signal(int signo) const;
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

  Worker(Loop&, OnOutput);
  bool read_once(Source&);

  Loop& loop_;
  OnOutput on_output_;
  pid_t pid_ = 0;
  bool running_ = true;
  Source sources_[2];
};

}  // namespace kolo::agent
