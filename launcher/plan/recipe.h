#pragma once

#include <string>
#include <vector>

#include "base/address.h"
#include "base/crypto.h"
#include "launcher/plan/plan.h"

namespace kolo {

// How to start one worker.
struct Recipe {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // all of it, "NAME=value"
  std::string cwd;
  bool operator==(const Recipe&) const = default;
};

// What all workers of a job have in common.
struct Setting {
  std::vector<std::string> command;
  std::vector<std::string> env;  // the launcher's own
  std::string cwd;
  Address store;
  Key key;
};

// Pure.  `ip` is where the worker listens for its peers.  A variable of ours replaces one of the
// same name that the launcher itself was started with, so that a job may start another.
Recipe make_recipe(const Setting&, const Slot&, const Plan&, const std::string& ip);

}  // namespace kolo
