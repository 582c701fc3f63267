#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/doctor/consultation.h"

namespace corro::launcher::doctor {

// Whether all hosts that were seen have the same of something.  What most have is usual; if two
// values are as frequent, the one that comes first.
class Agreement {
 public:
  using Value = std::function<std::string(const Inspection&)>;

  Agreement(const Consultation&, const Value&);

  // Empty: most have none.
  const std::string& usual() const { return usual_; }
  // Those that have another value, or none ("").
  const std::vector<std::pair<const HostReport*, std::string>>& odd_ones() const { return odd_; }

 private:
  std::string usual_;
  std::vector<std::pair<const HostReport*, std::string>> odd_;
};

}  // namespace corro::launcher::doctor
