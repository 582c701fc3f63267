#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "launcher/doctor/diagnose.h"

namespace corro::launcher::doctor {

inline constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

inline Gpu gpu(int index, const std::string& name = "A100") {
  Gpu out;
  out.index = index;
  out.name = name;
  return out;
}

inline Inspection healthy() {
  Inspection seen;
  seen.hostname = "some";
  seen.architecture = "x86_64";
  seen.cores = 8;
  seen.memory_bytes = 64 * kGiB;
  seen.available_bytes = 60 * kGiB;
  seen.cwd = Folder{"/data", true, true, true, 100 * kGiB, 200 * kGiB, ""};
  seen.scratch = {{"/tmp", true, true, true, 10 * kGiB, 20 * kGiB, ""},
                  {"/dev/shm", true, true, true, 32 * kGiB, 32 * kGiB, ""},
                  {"/home/ada", true, true, true, 10 * kGiB, 20 * kGiB, ""}};
  seen.program = FoundProgram{"/data/train", true, "", ""};
  seen.python = Python{"/usr/bin/python3", "3.11.2", {{"torch", "2.13.0", "/lib"}}};
  return seen;
}

// h1, h2, … are all well, and h0 is where the launcher is.
struct Ward {
  Consultation consultation;

  explicit Ward(int hosts) {
    consultation.here = "boot net:0";
    consultation.program = "/data/train";
    for (int i = 1; i <= hosts; ++i) {
      HostReport host{.host = "h" + std::to_string(i), .user = {}, .workers = 2};
      host.arrival = Arrival{};
      host.round_trip = std::chrono::milliseconds(1);
      host.clock = ClockOffset{{}, std::chrono::microseconds(500)};
      host.seen = healthy();
      host.seen->identity = "boot net:" + std::to_string(i);
      host.seen->nics = {{"eth0", "10.0.0." + std::to_string(i), true, false, 1000}};
      consultation.hosts.push_back(host);
    }
  }

  HostReport& operator[](int i) { return consultation.hosts[static_cast<std::size_t>(i) - 1]; }
  Inspection& seen(int i) { return *(*this)[i].seen; }
  Folder& scratch(int i, int which) { return seen(i).scratch[static_cast<std::size_t>(which)]; }

  void fails(int i, Barrier barrier) {
    (*this)[i].barrier = std::move(barrier);
    (*this)[i].seen.reset();
    (*this)[i].arrival.reset();
  }

  void route(int from, int to, bool open, const std::string& ip = {}) {
    consultation.routes.push_back({"h" + std::to_string(from), "h" + std::to_string(to),
                                   ip.empty() ? "10.0.0." + std::to_string(to) : ip, open,
                                   open ? "" : "timed out"});
  }

  std::vector<Finding> findings() const { return diagnose(consultation); }

  // There must be one only.
  Finding only() const {
    const auto all = findings();
    REQUIRE(all.size() == 1);
    return all.front();
  }
};

using Names = std::vector<std::string>;

struct Expected {
  Severity severity;
  Class about;
  std::string what, fix;
};

inline void check(const Finding& found, const Expected& expected, const Names& hosts = {"h2"}) {
  CHECK(found.severity == expected.severity);
  CHECK(name_of(found.about) == name_of(expected.about));
  CHECK(found.hosts == hosts);
  CHECK(found.what == expected.what);
  CHECK(found.fix == expected.fix);
}

}  // namespace corro::launcher::doctor
