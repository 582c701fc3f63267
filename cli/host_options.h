#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/parse.h"
#include "cli/values.h"

namespace corro::cli {

struct ChosenHosts {
  std::vector<launcher::HostSpec> hosts;   // with their slots; empty: nobody said any
  std::vector<launcher::HostSpec> to_ask;  // for their GPUs, before anything can be chosen
  std::vector<std::string> notes;
};

// Whether one of the options names hosts.
bool names_hosts(const Values&);

// What a scheduler has given to this job; none: there is no scheduler, or it is not ours to ask.
Result<std::optional<launcher::Allocation>> ask_scheduler(const Surroundings&,
                                                          std::vector<std::string>& notes);

// The hosts that the options name, or else those of the allocation.
Result<ChosenHosts> choose_hosts(const Values&, const std::optional<launcher::Allocation>&,
                                 const Surroundings&);

}  // namespace corro::cli
