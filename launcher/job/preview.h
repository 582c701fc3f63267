#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/job/consult.h"
#include "launcher/job/job.h"
#include "launcher/plan/plan.h"

namespace corro::launcher {

// One thing that was looked at before a job.
struct Check {
  enum class Verdict { good, doubtful, bad } verdict = Verdict::good;
  std::string what, text;
  int exit_code = 0;  // what the job would end with, if it is bad
  std::string fix{};  // a command that mends it, if one is known
  bool operator==(const Check&) const = default;
};

// What a job would do, found out without starting it.
struct Preview {
  std::optional<Plan> plan;      // none: the checks say why
  std::vector<Variable> common;  // what every worker gets besides the launcher's own
  int inherited = 0;             // how many of the launcher's own variables they get
  std::vector<Check> checks;

  int exit_code() const;  // 0: the job can be started
};

// Goes to other machines if the job would; see consult().
Preview preview(const JobSpec&, const WatchConsult& = {});

}  // namespace corro::launcher
