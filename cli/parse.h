#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "launcher/job/job.h"

namespace kolo {

struct ShowHelp {};
struct ShowVersion {};
struct RunJob {
  JobSpec spec;
  bool verbose = false;
};
using Request = std::variant<ShowHelp, ShowVersion, RunJob>;

// Turns the arguments (without the program's name) into what the user asked for.  Fills in of the
// spec what can be said on the command line.
Result<Request> parse_command_line(const std::vector<std::string>& arguments);

}  // namespace kolo
