#pragma once

#include <csignal>
#include <optional>

#include "base/fd.h"

namespace corro::launcher {

// The signals by which a user ends, stops or speaks to a job.  While this lives they are read here
// and do nothing else; after it they do again what they did before.
//
// To be made before any thread is started: each inherits what is blocked.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;

  int fd() const { return fd_.get(); }  // readable when there is one
  std::optional<int> next();

 private:
  sigset_t before_;
  Fd fd_;
};

}  // namespace corro::launcher
