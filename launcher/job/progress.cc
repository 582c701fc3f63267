#include "launcher/job/progress.h"

#include <fmt/format.h>

namespace corro::launcher {

std::string Progress::text() const {
  if (hosts_ready < hosts) return fmt::format("starting: {} of {} hosts ready", hosts_ready, hosts);
  if (started < workers) return fmt::format("starting: {} of {} workers started", started, workers);
  if (met > 0 && met < workers)
    return fmt::format("starting: {} of {} workers in init", met, workers);
  return {};
}

}  // namespace corro::launcher
