#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "launcher/machine/inspection.h"
#include "launcher/network/barrier.h"

// What was found out about the hosts of a job.  `diagnose` says what it means.
namespace corro::launcher::doctor {

// What stood in the way to a host.
struct Barrier {
  using Kind = BarrierKind;
  Kind kind = Kind::unreachable;
  std::string why;
  std::string fix;  // a command; empty: whoever met the barrier knows none
  bool operator==(const Barrier&) const = default;
};

// How long the parts of the way took.
struct Arrival {
  std::string address;  // empty: this machine, or another command knows the way
  Duration resolve{}, connect{}, login{}, start{};
  bool staged = false;  // this program was brought along
  int attempts = 1;
  std::string host_key;
  bool operator==(const Arrival&) const = default;
};

// How far a host's clock is ahead of ours, at most so much more or less.
struct ClockOffset {
  std::chrono::microseconds ahead{}, uncertainty{};
  bool operator==(const ClockOffset&) const = default;
};

struct HostReport {
  std::string host, user;
  int workers = 0;       // that it would have
  bool is_here = false;  // it is this machine, by its name
  std::optional<Barrier> barrier;
  std::optional<Arrival> arrival;
  std::optional<std::chrono::microseconds> round_trip;
  std::optional<ClockOffset> clock;
  std::optional<Inspection> seen;  // none: the barrier says why
  bool operator==(const HostReport&) const = default;
};

// One host's try to connect to another.
struct Route {
  std::string from, to;  // hosts
  std::string ip;        // of `to`
  bool open = false;
  std::string why;  // it is not
  bool operator==(const Route&) const = default;
};

struct Consultation {
  std::vector<HostReport> hosts;
  std::vector<Route> routes;
  std::string here;                   // the launcher's own Inspection::identity
  std::string program;                // the command's first word; empty: nobody said
  bool script_is_here = false;        // what it is told to run, if that is a script
  int first_port = 0, last_port = 0;  // which hosts must reach of each other; 0: any
  std::string ssh = "ssh";            // by which a user gets there: "ssh -p 2222"
  std::string rsh;                    // in its place: "kubectl exec -i {host} --"
  bool operator==(const Consultation&) const = default;
};

}  // namespace corro::launcher::doctor
