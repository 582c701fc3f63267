#pragma once

#include <string>
#include <vector>

#include "launcher/doctor/consultation.h"
#include "launcher/doctor/finding.h"

namespace corro::launcher::doctor {

// What to do about it: a command for the host itself, or for whoever sits here, in which %h stands
// for the host; without it, once is enough for all.
struct Remedy {
  enum class Where { there, here } where = Where::there;
  std::string command;
  bool operator==(const Remedy&) const = default;
};

// What is wrong with one host.
struct Symptom {
  Severity severity = Severity::bad;
  Class about = Class::reach;
  std::string what;  // without the host's name, so that those who have the same say it once
  Remedy remedy;
  std::string example{};    // in this host's own words
  std::string exact_fix{};  // better than the remedy, but good for this host only
};

// Collects what is wrong, host by host, and says it once for all who have the same.
class Ledger {
 public:
  explicit Ledger(const Consultation& about) : about_(about) {}

  void add(const HostReport&, Symptom);
  void add(Finding);  // whole already

  // What is bad first, then in the order of the classes.
  std::vector<Finding> findings() const;

  // The remedy as a user of a shell would type it.
  std::string command(const Remedy&, const std::vector<const HostReport*>&) const;

 private:
  struct Group {
    Symptom symptom;
    std::vector<const HostReport*> hosts;
  };
  Finding finding_of(const Group&) const;

  const Consultation& about_;
  std::vector<Group> groups_;
  std::vector<Finding> whole_;
};

// The checks, each of which looks at one thing.
void check_reach(const Consultation&, Ledger&);
void check_machines(const Consultation&, Ledger&);
void check_limits(const Consultation&, Ledger&);
void check_files(const Consultation&, Ledger&);
void check_versions(const Consultation&, Ledger&);
void check_gpus(const Consultation&, Ledger&);
void check_network(const Consultation&, Ledger&);

}  // namespace corro::launcher::doctor
