#pragma once

#include <memory>

#include "runtime/pattern/schedule.h"
#include "runtime/transport/message.h"

namespace corro::runtime {

// Rank `rank`'s part in an operation of `size` ranks, where only neighbours on the ring speak
// with each other.
std::unique_ptr<Schedule> ring_schedule(const Operation&, int rank, int size);

}  // namespace corro::runtime
