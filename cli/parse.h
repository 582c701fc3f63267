#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "launcher/hosts/allocation.h"
#include "launcher/job/job.h"

namespace corro::cli {

// What a command line may refer to.
struct Surroundings {
  launcher::ReadVariable variable;
  launcher::ReadFile read_file;
  launcher::ReadFile run_script;  // what a program prints
  // Of a host that comes without a number; none: it was not asked yet.
  std::function<std::optional<int>(const launcher::HostSpec&)> count_slots;
  std::function<bool(const launcher::HostSpec&)> is_here;  // on this machine
};

struct ShowHelp {};
struct ShowVersion {};
struct CheckBuild {
  bool verbose = false;
};
struct RunJob {
  launcher::JobSpec spec;
  bool dry_run = false, json = false, exclude_bad = false;
  LogLevel log_from = LogLevel::warning;  // what the launcher says of itself
  std::vector<std::string> notes;         // for the user, a line each
};
// The hosts of a job, which need not have a command.
struct SeeDoctor {
  launcher::JobSpec spec;
  bool json = false;
  std::vector<std::string> notes;
};
// The hosts of a job that come without a number, and how they are reached: they are to be asked for
// their GPUs, and then the command line is to be read again, in surroundings that know.
struct AskHosts {
  launcher::JobSpec spec;
  bool needs_all = true;  // else who cannot be asked is named later, with all that is wrong
};
struct ShowHosts {
  std::vector<launcher::HostSpec> hosts;
  std::optional<launcher::HostFormat> format;  // none: JSON
  std::vector<std::string> notes;
};
using Request =
    std::variant<ShowHelp, ShowVersion, CheckBuild, RunJob, SeeDoctor, AskHosts, ShowHosts>;

// Turns the arguments (without the program's name) into what the user asked for.  Fills in of the
// spec what can be said on the command line.  Whatever is wrong is said here, before anything
// starts.
Result<Request> parse_command_line(const std::vector<std::string>& arguments, const Surroundings&);

}  // namespace corro::cli
