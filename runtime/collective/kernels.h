#pragma once

#include "base/bytes.h"
#include "runtime/transport/message.h"

// The arithmetic on elements.  Views hold whole elements and are aligned for their type.
namespace corro::runtime {

// into[i] = into[i] ∘ from[i].  An average is a sum until it is finished.
void reduce(Reduction, DataType, MutByteView into, ByteView from);

// What is left to do with elements that have every rank's part: an average is divided.
void finish(Reduction, DataType, MutByteView data, int ranks);

}  // namespace corro::runtime
