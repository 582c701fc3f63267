#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"

namespace kolo {

// Writes from a thread of its own, so that a terminal or a disk that does not take any more holds
// up nothing but itself.  In the order of the calls.
//
// Whoever prints bounds what is under way by waiting for `written`.  If the reader of a descriptor
// is gone, what was meant for it is dropped: the job goes on, as its checkpoints matter more than
// its words.
class Printer {
 public:
  // Called on the printer's thread, with what became of it.
  using Written = std::function<void(const Result<Unit>&)>;

  Printer();
  ~Printer();  // after all is written

  void print(int fd, std::string text, Written);

 private:
  struct Piece {
    int fd;
    std::string text;
    Written written;
  };

  void work();

  std::mutex mutex_;
  // Guarded by it:
  std::condition_variable changed_;
  std::deque<Piece> pieces_;
  bool closing_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace kolo
