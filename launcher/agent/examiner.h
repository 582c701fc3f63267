#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/loop.h"
#include "launcher/agent/evidence.h"

namespace corro::launcher::agent {

// Finds out what workers are doing, while the agent goes on: one examination at a time, in a
// process of its own that has 1.5 s.
//
// Belongs to the loop.
class Examiner {
 public:
  struct Subject {
    std::uint32_t worker = 0;
    pid_t pid = 0;
  };
  // What was seen of each subject, in their order.
  using Done = std::function<void(const std::vector<Subject>&, const std::vector<Evidence>&)>;

  explicit Examiner(Loop& loop) : loop_(loop) {}

  // Calls back once, from the loop or from within this.  Dropped while another one is under way.
  void examine(std::vector<Subject>, Done);

 private:
  void advance();

  struct UnderWay {
    std::vector<Subject> subjects;
    Done done;
    Examination examination;
    Loop::Watch watch{};
    Loop::Timer deadline{};
  };

  Loop& loop_;
  std::optional<UnderWay> under_way_;
};

}  // namespace corro::launcher::agent
