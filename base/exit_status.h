#pragma once

#include <cstdint>
#include <string>

#include "base/codec.h"

namespace corro {

// How a process ended: with a code of its own, or by a signal.
struct ExitStatus {
  std::int32_t code = 0;
  std::int32_t signo = 0;  // 0: it exited by itself

  static ExitStatus exited(int code) { return {code, 0}; }
  static ExitStatus killed(int signo) { return {0, signo}; }

  bool ok() const { return code == 0 && signo == 0; }

  // As a shell has it: 128+n for signal n.
  int shell_code() const { return signo ? 128 + signo : code; }

  // "exited with code 3", "was killed by SIGKILL"
  std::string text() const;

  CORRO_FIELDS(code, signo)
  bool operator==(const ExitStatus&) const = default;
};

// What a process, and those of its children that it has waited for, had used when it ended.
struct Usage {
  std::uint64_t peak_rss_bytes = 0;  // of the largest of them
  std::uint64_t cpu_ms = 0;          // of all
  CORRO_FIELDS(peak_rss_bytes, cpu_ms)
  bool operator==(const Usage&) const = default;
};

}  // namespace corro
