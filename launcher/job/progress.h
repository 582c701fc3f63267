#pragma once

#include <string>

namespace corro::launcher {

// How far a job has risen, for whoever waits at a terminal.
struct Progress {
  int hosts = 0, hosts_ready = 0;
  int workers = 0, started = 0;
  int met = 0;  // workers that have come to the store: those in corro_open or beyond

  // "2 of 4 hosts ready" until they are; then "7 of 16 workers started", then "3 of 16 in init".
  // Empty when there is nothing more to wait for, or nobody comes to the store.
  std::string text() const;
};

}  // namespace corro::launcher
