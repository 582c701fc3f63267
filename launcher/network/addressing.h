#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/network/door.h"

namespace kolo {

// Why hosts do not find each other, and which is to blame.
struct Unmet {
  std::string host, why;
};

// Who knocks at whose doors, and by which address each host is known to the others in the end.
// Interface names need not be equal, and an address counts only if it was reached.
//
// Everyone knocks where its workers will connect to: at the launcher, where the store will be, at
// the first host, where rank 0 will be, and at the next one; the first also at the last.
//
// Sans-IO.
class Addressing {
 public:
  static constexpr const char* kLauncher = "the launcher";

  explicit Addressing(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

  void has_doors(const std::string& host, std::vector<Door>);  // the launcher, too
  std::vector<Doorway> to_knock_at(const std::string& host) const;

  void knocked(const std::string& host, const std::vector<Opening>&);
  bool all_knocked() const { return knocks_.size() == hosts_.size(); }

  // The address that all who tried have reached: the fastest interface first, version 4 before 6.
  Result<Door, Unmet> way_to(const std::string& host) const;

 private:
  std::vector<std::string> targets_of(const std::string& host) const;

  const std::vector<std::string> hosts_;
  std::map<std::string, std::vector<Door>> doors_;
  std::map<std::string, std::map<std::string, Opening>> knocks_;  // by who, at whom
};

}  // namespace kolo
