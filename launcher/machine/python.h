#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/machine/inspection.h"

namespace corro::launcher {

// The Python that a command runs: its first word, the interpreter of the script that its first word
// is, or whatever python3 is in the environment.  Empty: there is none.
std::string python_of(const InspectionRequest&, const FoundProgram&);

// Runs that Python for a moment, as a worker would, and imports none of the frameworks.  Waits for
// it: for a child's use.
Result<Python> ask_python(const std::string& path, const InspectionRequest&);

// What the script of ask_python prints: lines with tabs, of which others may be in between.
Python parse_python_report(std::string_view text);

}  // namespace corro::launcher
