#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/network/door.h"

namespace corro::launcher {

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
  static constexpr const char* kLauncher = "@launcher";  // which is no name of a host

  explicit Addressing(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

  void has_doors(const std::string& host, std::vector<Door>);  // the launcher, too
  std::vector<Doorway> to_knock_at(const std::string& host) const;

  void knocked(const std::string& host, const std::vector<Opening>&);
  bool all_knocked() const { return knocks_.size() == hosts_.size(); }

  // In a line: who has which addresses.
  std::string question() const;

  // Each was reached at that address a while ago, and is knocked at there only.  False, and nothing
  // is assumed, if one does not have it any more.
  bool assume(const std::map<std::string, std::string>& addresses);
  bool assumes() const { return !assumed_.empty(); }

  // Somebody has not reached what was assumed.  All have to knock again, after assume_nothing().
  bool is_refuted() const;
  void assume_nothing();

  // The address that all who tried have reached: the fastest interface first, version 4 before 6.
  Result<Door, Unmet> way_to(const std::string& host) const;

 private:
  std::vector<std::string> targets_of(const std::string& host) const;

  const std::vector<std::string> hosts_;
  std::map<std::string, std::vector<Door>> doors_;
  std::map<std::string, std::map<std::string, Opening>> knocks_;  // by who, at whom
  std::map<std::string, Door> assumed_;
};

}  // namespace corro::launcher
