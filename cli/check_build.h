#pragma once

#include <string>
#include <vector>

#include "launcher/hosts/allocation.h"

namespace corro::cli {

// One thing that a job might use, under one of Horovod's headings.
struct Capability {
  enum class Heading { framework, controller, operation } heading;
  std::string name;
  bool available = false;
  std::vector<std::string> why;  // where it was looked for, and what that means; a line each
};

// Looks around; nothing is loaded or run.
std::vector<Capability> find_capabilities(const launcher::ReadVariable&);

// In Horovod's layout, which scripts read.
std::string check_build_text(const std::vector<Capability>&, bool verbose);

}  // namespace corro::cli
