#pragma once

#include "base/result.h"
#include "cli/parse.h"
#include "cli/values.h"

namespace corro::cli {

// Pure.  What the options say about a job, but for its size, its hosts and its command: into the
// spec, and what the user should know about them into the notes.
Result<Unit> apply_options(const Values&, const launcher::ReadVariable&, RunJob&);

// The same for those options whose sense depends on the number of workers, which must be known.
Result<Unit> apply_sized_options(const Values&, RunJob&);

// "-AWS_*,AWS_REGION"
Result<std::vector<launcher::EnvRule>> parse_env_rules(const std::string& text);

}  // namespace corro::cli
