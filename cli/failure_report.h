#pragma once

#include <string>

#include "launcher/job/job.h"

namespace corro::cli {

// What failure.json holds: who failed first and how, and what is known of every worker.
std::string failure_json(const launcher::Outcome&);

}  // namespace corro::cli
