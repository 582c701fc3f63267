#pragma once

#include <string>

#include "launcher/job/job.h"

namespace corro {

// What failure.json holds: who failed first and how, and what is known of every worker.
std::string failure_json(const Outcome&);

}  // namespace corro
