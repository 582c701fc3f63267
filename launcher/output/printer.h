#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"
#include "launcher/output/seam.h"

namespace corro::launcher {

// How far somebody may lag behind.  Who has once used it up gets it back bit by bit, so that one
// who is too slow for good costs the others little.
class Patience {
 public:
  explicit Patience(Duration most) : most_(most) {}

  Duration at(TimePoint now) const {
    constexpr int kShare = 10;  // of the time that others may spend waiting
    return lost_ ? std::min(most_, (now - *lost_) / kShare) : most_;
  }
  void lose(TimePoint now) { lost_ = now; }

 private:
  Duration most_;
  std::optional<TimePoint> lost_;
};

// What was not shown at a place, from when it was passed over until it has been told so.
class Gap {
 public:
  bool is_open() const { return bytes_ > 0 || !rest_.empty(); }
  void widen(std::size_t bytes) { bytes_ += bytes; }

  // What has to be shown before anything else is; it may be taken in parts.
  std::string note() const;
  void told(std::size_t bytes_of_note);

 private:
  std::uint64_t bytes_ = 0;  // of which no note tells
  std::string rest_;         // of a note of which a part was shown
};

// Somewhere to write to.  Without patience it is waited for as long as it takes.  With it, one that
// lags too far behind is passed over until it takes something again, and told then how much it
// missed.
//
// Once given to a printer it is that printer's to change.
struct Outlet {
  int fd = -1;
  std::optional<Patience> patience;
  std::optional<Seam> seam;  // if several share it
  Gap gap;
  std::uint64_t missed_all = 0;  // bytes

  // Of a standard stream.  A terminal gets a description of its own, which may be written to
  // without blocking, whatever others do with theirs; and nobody is held up for long by a Ctrl-S.
  static Outlet of(int standard, Fd& own);
};

// Writes from a thread of its own, so that a terminal or a disk that does not take any more holds
// up nothing but itself.  In the order of the calls.
//
// Whoever prints bounds what is under way by waiting for `written`.  If the reader of an outlet is
// gone, what was meant for it is dropped: the job goes on, as its checkpoints matter more than its
// words.
class Printer {
 public:
  // Called on the printer's thread, with what became of it.
  using Written = std::function<void(const Result<Unit>&)>;

  Printer();
  ~Printer();  // after all is written

  void print(Outlet&, Words, Written = ignored);

 private:
  static void ignored(const Result<Unit>&) {}

  struct Piece {
    Outlet* outlet;
    Words words;
    Written written;
    TimePoint since;  // it waits
  };

  static Result<Unit> write(Piece&);
  void work();

  std::mutex mutex_;
  // Guarded by it:
  std::condition_variable changed_;
  std::deque<Piece> pieces_;
  bool closing_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace corro::launcher
