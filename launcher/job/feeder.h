#pragma once

#include <functional>
#include <map>

#include "base/bytes.h"
#include "base/loop.h"

namespace corro::launcher {

// What the launcher is given to read, for the workers that are to have it.  Reads no more than the
// slowest of them takes.
//
// A job in the background never stops on a terminal: it tries again from time to time, and goes on
// when it is in the foreground.
//
// Belongs to the loop; owned by the job's driver.
class Feeder {
 public:
  using Send = std::function<void(int rank, ByteView, bool ends)>;

  Feeder(Loop&, int fd, const std::vector<int>& ranks, Send);

  void started(int rank);
  void taken(int rank, std::size_t bytes);
  void gone(int rank);

 private:
  void go_on();
  void read_once();
  std::size_t room() const;

  struct Reader {
    bool here = false;
    std::size_t under_way = 0;
  };

  Loop& loop_;
  const int fd_;
  const Send send_;
  std::map<int, Reader> readers_;  // by rank
  Loop::Watch watch_;
  Loop::Timer again_;
  bool ended_ = false;
};

}  // namespace corro::launcher
