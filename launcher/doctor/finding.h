#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/hosts/hosts.h"

namespace corro::launcher::doctor {

enum class Severity { bad, warning, note };
std::string_view name_of(Severity);

// What a finding is about.  Each has its exit code.
enum class Class {
  name,
  reach,
  host_key,
  login,
  machine,  // this program cannot be brought there, or does not run
  network,  // between the hosts
  limits,
  versions,
  files,
  gpus,
  clock,
};
constexpr Class last_of(Class) {
  return Class::clock;
}
std::string_view name_of(Class);

inline constexpr int kFirstExitCode = 110;
constexpr int exit_code(Class c) {
  return kFirstExitCode + static_cast<int>(c);
}

struct Finding {
  Severity severity = Severity::bad;
  Class about = Class::reach;
  std::vector<std::string> hosts;  // as the user named them; empty: it concerns none in particular
  std::string what;                // "Python is 3.9.2, elsewhere it is 3.11.2"
  std::string example;             // what one of them said; may be empty
  std::string fix;                 // a command
  std::vector<std::string> without;  // those who have to go if nobody mends it
  bool operator==(const Finding&) const = default;
};

// 0: nothing is bad.  Else that of the first that is.
int exit_code(std::span<const Finding>);

// Pure.  The hosts without those that have to go because of bad findings; an error if too few slots
// remain for `np` workers.
Result<std::vector<HostSpec>> exclude_bad(std::vector<HostSpec>, std::span<const Finding>, int np);

}  // namespace corro::launcher::doctor
