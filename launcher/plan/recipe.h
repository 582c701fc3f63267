#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/crypto.h"
#include "launcher/plan/plan.h"

namespace corro::launcher {

using Variable = std::pair<std::string, std::string>;  // name, value

using Variables = std::map<std::string, std::string, std::less<>>;

// How to start one worker.
struct Recipe {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // all of it, "NAME=value"
  std::string cwd;
  bool operator==(const Recipe&) const = default;
};

// Which of the launcher's own variables the workers get; of the rules that fit a name the last
// counts.
struct EnvRule {
  std::string glob;
  bool give = true;
  bool operator==(const EnvRule&) const = default;
};

// Where the workers' environment comes from.  What stands further down counts more.
struct WorkerEnvironment {
  std::vector<std::string> inherited;  // the launcher's own, "NAME=value"
  std::vector<EnvRule> rules;          // for those
  std::vector<std::string> tunables;   // from options
  std::vector<std::string> exported;   // -x
  bool operator==(const WorkerEnvironment&) const = default;
};

// By name: those of the launcher's own variables that the workers get, with what the user set.
std::vector<Variable> user_variables(const WorkerEnvironment&);

// What all workers of a job have in common.
struct Setting {
  std::vector<std::string> command;
  WorkerEnvironment environment;
  std::string cwd;
  Address store;
  Address master;   // where rank 0 may listen for what brings its own rendezvous
  PortRange ports;  // for all that listens
  Key key;
};

// What a worker gets of its host.
struct HostShare {
  std::string ip;                     // where it listens for its peers
  std::string interface = "lo";       // that has this address
  std::vector<std::string> chosen{};  // interfaces that the user names, as far as the host has them
  int cores = 1;                      // of the host, for all its workers
  std::vector<Variable> gpu;          // by which it finds its own
};

// What a worker learns about itself, and what all learn about the job.
std::vector<Variable> slot_variables(const Slot&, const Plan&);
std::vector<Variable> job_variables(const Setting&, const Plan&);

// Whether a variable is one of those.
bool is_ours(std::string_view name);

// What it is given if the user has not set it.
std::vector<Variable> default_variables(const Slot&, const HostShare&);

// Pure.  A variable of ours replaces one of the same name that the launcher itself was started
// with, so that a job may start another.
class Recipes {
 public:
  Recipes(const Setting&, const Plan&);  // both outlive it

  Recipe recipe_for(const Slot&, const HostShare&) const;

 private:
  const Setting& setting_;
  const Plan& plan_;
  Variables exported_, common_;
};

}  // namespace corro::launcher
