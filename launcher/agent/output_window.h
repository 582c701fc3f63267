#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "launcher/agent/protocol.h"

namespace corro::launcher::agent {

// How much output of workers may be under way that the launcher has not acknowledged.  While the
// window is closed the workers' output is not read, so that a slow terminal throttles the workers
// that write, and nothing else.
//
// It closes at kOutputWindow bytes and opens again below half of that, so that workers are not
// switched on and off for every frame.  Sans-IO.
class OutputWindow {
 public:
  bool is_open() const { return is_open_; }

  // Whether that has closed the window.
  [[nodiscard]] bool sent(std::uint64_t seq, std::size_t bytes) {
    if (is_for_good_) return false;
    frames_.push_back({seq, bytes});
    bytes_ += bytes;
    return bytes_ >= kOutputWindow && set(false);
  }

  // That frame and all before it.  Whether that has opened the window.
  [[nodiscard]] bool acknowledged(std::uint64_t seq) {
    while (!frames_.empty() && frames_.front().seq <= seq) {
      bytes_ -= frames_.front().bytes;
      frames_.pop_front();
    }
    return bytes_ < kOutputWindow / 2 && set(true);
  }

  // The launcher is gone and will acknowledge nothing any more.  Whether that has opened the
  // window.
  [[nodiscard]] bool open_for_good() {
    is_for_good_ = true;
    frames_.clear();
    bytes_ = 0;
    return set(true);
  }
  bool is_for_good() const { return is_for_good_; }

 private:
  struct Frame {
    std::uint64_t seq;
    std::size_t bytes;
  };

  bool set(bool open) {
    const bool changed = is_open_ != open;
    is_open_ = open;
    return changed;
  }

  std::deque<Frame> frames_;  // not acknowledged
  std::size_t bytes_ = 0;     // of them
  bool is_open_ = true, is_for_good_ = false;
};

}  // namespace corro::launcher::agent
