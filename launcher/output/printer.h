#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "launcher/output/stream.h"

namespace kolo {

// Writes to the launcher's own stdout and stderr from a thread of its own, so that a terminal
// that does not take any more holds up nothing but itself.  In the order of the calls.
//
// Whoever prints bounds what is under way by waiting for `written`.  If the reader is gone, the
// rest is dropped: the job goes on, as its checkpoints matter more than its words.
class Printer {
 public:
  using Fn = std::function<void()>;

  // `written` is called on the printer's thread.
  explicit Printer(int out_fd = 1, int err_fd = 2);
  ~Printer();  // after all is written

  void print(Stream, std::string text, Fn written);

 private:
  struct Piece {
    Stream stream;
    std::string text;
    Fn written;
  };

  void work();
  int fd_of(Stream stream) const { return stream == Stream::out ? out_fd_ : err_fd_; }

  const int out_fd_, err_fd_;

  std::mutex mutex_;
  // Guarded by it:
  std::condition_variable changed_;
  std::deque<Piece> pieces_;
  bool closing_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace kolo
