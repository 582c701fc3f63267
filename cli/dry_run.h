#pragma once

#include <string>

#include "launcher/job/preview.h"

namespace corro::cli {

// What --dry-run says, for people and for scripts.
std::string dry_run_text(const launcher::JobSpec&, const launcher::Preview&);
std::string dry_run_json(const launcher::JobSpec&, const launcher::Preview&);

// What `horovodrun hosts --format json` prints.
std::string hosts_json(const std::vector<launcher::HostSpec>&);

}  // namespace corro::cli
