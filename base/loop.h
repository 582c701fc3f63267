#pragma once

#include <functional>
#include <memory>

#include "base/time.h"

namespace corro {

enum class Ready { read, write };

// Where a process waits.  Everything that is watched or timed calls back on the thread in run().
// Only post() and stop() may be called from another thread; post is the door into this one.
//
// Watches and timers end before their loop; what was posted and never ran is destroyed with it.
class Loop {
 public:
  using Fn = std::function<void()>;

  // Calls back each time the descriptor is ready, until destroyed.  May be destroyed inside its
  // own callback.
  class Watch {
   public:
    Watch() = default;
    struct State;
    explicit Watch(std::shared_ptr<State> state);
    Watch(Watch&&) noexcept;
    Watch& operator=(Watch&&) noexcept;
    ~Watch();
    explicit operator bool() const { return state_ != nullptr; }

   private:
    std::shared_ptr<State> state_;
  };

  // Calls back once, unless destroyed before.
  class Timer {
   public:
    Timer() = default;
    struct State;
    explicit Timer(std::shared_ptr<State> state);
    Timer(Timer&&) noexcept;
    Timer& operator=(Timer&&) noexcept;
    ~Timer();

   private:
    std::shared_ptr<State> state_;
  };

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;

  TimePoint now() const { return Clock::now(); }

  // The descriptor stays the caller's, blocks or not as before, and must outlive the watch.  What
  // cannot be waited for, like a file or /dev/null, is always ready.
  [[nodiscard]] Watch watch(int fd, Ready, Fn);
  [[nodiscard]] Timer at(TimePoint, Fn);
  void post(Fn);

  // Until stop().  A stop before the run ends it at once; it can be run again after.
  void run();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace corro
