#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

#include "base/exit_status.h"
#include "base/fd.h"
#include "base/time.h"

namespace corro::launcher {

// A question that may never be answered, such as one to a sick driver or a dead file server, put by
// a forked child.
//
// A child and not a thread: whoever asks may be held in the kernel, where not even SIGKILL arrives.
// A thread that stands there keeps its process from ever ending; a child keeps only itself.  What a
// library has started or opened for the question is gone with it, too.
//
// Belongs to one thread, which lives on meanwhile: the child ends with it.
class Errand {
 public:
  using Work = std::function<Bytes()>;

  // The work runs in the child, which holds nothing of its parent's but its memory.
  static Result<Errand> send(const Work&);
  Errand(Errand&&) noexcept = default;
  ~Errand() { give_up(); }

  int fd() const { return answer_.get(); }  // to be watched for reading, until advance() says so

  // Takes what has come.  Whether that was the end of it.
  bool advance();

  // Waits for the answer; `timed_out` if it does not come, and then it is given up.
  Result<Bytes> wait(Deadline);

  // What has come, at the end.
  Bytes take() { return std::move(bytes_); }

  // How the child ended, after a wait.  None: someone else has reaped it, or it is stuck.
  const std::optional<ExitStatus>& end() const { return end_; }

 private:
  Errand(pid_t pid, Fd answer, TimePoint began)
      : pid_(pid), answer_(std::move(answer)), began_(began) {}
  void give_up();
  void reap_it();

  pid_t pid_;
  Fd answer_;
  TimePoint began_;
  bool over_ = false;
  Bytes bytes_;
  std::optional<ExitStatus> end_;
};

}  // namespace corro::launcher
