#pragma once

#include <cstdint>

#include "base/time.h"

namespace corro::launcher {

// How often a host is tried that cannot be connected to; one that takes a connection and then
// closes it, as an sshd does that has too much to do (its MaxStartups); and one whose name nobody
// could be asked for, as is also said of any mistyped name where there is no name server.
inline constexpr int kAttempts = 5, kAttemptsIfTurnedAway = 10, kAttemptsIfNameless = 2;

// How long to wait after so many attempts (from 1) have failed.  Twice as long each time, up to a
// limit, and by the seed up to half more or less, so that many pipes that an sshd turned away at
// once do not come back at once.
Duration back_off(int failed_attempts, std::uint64_t seed);

}  // namespace corro::launcher
