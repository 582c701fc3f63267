#pragma once

#include "base/bytes.h"
#include "runtime/op/op.h"

namespace corro::runtime {

// Combines the inputs of all ranks, which lie one after the other in `inputs` (and are used up),
// by Adasum into `out`: neighbours first, then neighbouring pairs, and so on; an input without a
// partner waits for the next level.  Each piece of `out` counts as a tensor of its own.  Every
// rank that does this gets the same bits.
//
//   adasum(a, b) = (1 - a·b / 2|a|²) a + (1 - a·b / 2|b|²) b
//
// Parallel gradients are averaged, orthogonal ones are added.
void adasum(DataType, MutByteView inputs, int ranks, const MutPieces& out);

}  // namespace corro::runtime
