#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "base/time.h"
#include "runtime/domain/domain.h"
#include "runtime/domain/layout.h"

namespace corro::runtime {

// How a rank waits for another before it sleeps.  A rank that spins while the awaited one has no
// processor to run on loses a factor of 400.
struct SpinPolicy {
  std::chrono::nanoseconds spin{0};  // with pauses, keeping the processor
  int yields = 0;                    // then so often leaving it to others

  bool operator==(const SpinPolicy&) const = default;
};

// Processors that all these members have together: those of their affinities, cut to the smallest
// quota of their control groups.  The same for all members, as all see the same claims.
double processors_of(std::span<const CpuClaim>);

SpinPolicy spin_policy(int members, double processors);

// This process's affinity and quota, as they are now.
CpuClaim own_cpu_claim();

// "max 100000", "150000 100000" (cpu.max) in thousandths of a processor; 0: no limit.
std::uint64_t parse_cpu_max(std::string_view);

void pause_processor();

// Drives a started operation to its end: spins, yields, then sleeps until the doorbell or one of
// `also` is readable.  `timed_out` names the member that did not come.  What became readable in
// `also` ends the wait with `interrupted`; the operation is still under way then.
enum class Driven : std::uint8_t { done, interrupted };
Outcome<Driven> drive(Domain&, const SpinPolicy&, Deadline, std::span<const int> also = {});

}  // namespace corro::runtime
