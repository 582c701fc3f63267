#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/crypto.h"
#include "base/result.h"
#include "base/socket.h"
#include "runtime/pattern/choose.h"

namespace corro::runtime {

// A worker's place in its job.
struct Place {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  int cross_rank = 0, cross_size = 1;
  std::string host = "localhost";
  bool operator==(const Place&) const = default;
};

// How to meet the other workers.
struct Meeting {
  Address store;
  Key key;
  std::uint64_t generation = 0;
  std::string ip;   // of this worker, for its peers
  PortRange ports;  // for its listener
  bool operator==(const Meeting&) const = default;
};

// What the launcher tells a worker.
struct JobEnvironment {
  Place place;
  std::optional<Meeting> meeting;  // none: a single process that nobody launched
  std::chrono::seconds operation_timeout{300};
  std::chrono::seconds start_timeout{30};  // Horovod's
  std::string status;   // handle of the status page that the agent reads; empty: there is none
  std::string machine;  // ranks with equal ones may share memory
  Overrides algorithms;
};

// getenv, or a test's.  Null for what is not set.
using Lookup = std::function<const char*(const char* name)>;

// All of it or nothing: an environment that is set in part is an error that names the variable.
Result<JobEnvironment> read_environment(const Lookup&);

}  // namespace corro::runtime
