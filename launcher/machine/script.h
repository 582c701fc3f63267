#pragma once

#include <optional>
#include <span>
#include <string>

#include "launcher/machine/inspection.h"

namespace corro::launcher {

// What an interpreter is told to run.
struct Script {
  std::string name;
  bool may_be_in_path = false;  // a shell looks there, too
  bool operator==(const Script&) const = default;
};

// Pure.  None: the command is neither a Python nor a shell, or gets its program in another way (-c,
// -m, from its input).
std::optional<Script> script_of(std::span<const std::string> argv);

// That of the request's command, as a worker would find it.
std::optional<FoundScript> look_for_script(const InspectionRequest&);

}  // namespace corro::launcher
