#pragma once

#include <string>

#include "launcher/job/preview.h"

namespace corro {

// What --dry-run says, for people and for scripts.
std::string dry_run_text(const JobSpec&, const Preview&);
std::string dry_run_json(const JobSpec&, const Preview&);

// What `horovodrun hosts --format json` prints.
std::string hosts_json(const std::vector<HostSpec>&);

}  // namespace corro
