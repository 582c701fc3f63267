#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "runtime/op/op.h"

// The arithmetic on elements.  Views hold whole elements and need not be aligned.  Each kernel is
// compiled for several instruction sets and chosen at run time (Highway); all of them give the same
// bits.
//
// f16 and bf16 are computed in f32 and rounded once per call, to nearest even.  Integers wrap.
// Sum, product, min and max are commutative to the bit, so that two ranks that combine the same two
// values in either order get the same: a NaN in any operand gives the one NaN that kernels write
// (quiet, positive, no payload), and -0 is less than +0.
namespace corro::runtime {

// into[i] = a[i] ∘ b[i].  `into` may be `a` or `b`.  An average is a sum until it is finished.
void reduce(Reduction, DataType, MutByteView into, ByteView a, ByteView b);

// into[i] = sources[0][i] ∘ sources[1][i] ∘ …, from left to right, in one pass; f16 and bf16 are
// rounded once at the end.  Every source has the size of `into`, which may be one of them.
void reduce_all(Reduction, DataType, MutByteView into,
                std::span<const std::uint8_t* const> sources);

// What is done with a reduction once it has every rank's part.
struct Finish {
  Reduction reduction = Reduction::sum;
  DataType type = DataType::f32;
  int ranks = 1;
  double postscale = 1;

  bool nothing() const { return reduction != Reduction::average && postscale == 1; }
};

// Divides an average by the number of ranks, and multiplies by the postscale as `scale` does.
void finish(const Finish&, MutByteView data);

// The same as reduce_all and then finish, with one pass through memory.
void reduce_all(const Finish&, MutByteView into, std::span<const std::uint8_t* const> sources);

// into[i] = from[i] * factor, in f64 for integers and f64, in f32 for the rest.  Integers round
// toward zero; what does not fit becomes the nearest that does.  `into` may be `from`.
void scale(DataType, MutByteView into, ByteView from, double factor);

// Sum of a[i] * b[i] in f64, for Adasum.
double dot(DataType, ByteView a, ByteView b);

// into[i] = x * a[i] + y * b[i], in f64 for f64 and f32 otherwise, for Adasum.  `into` may be `a`
// or `b`.
void combine(DataType, MutByteView into, double x, ByteView a, double y, ByteView b);

// Copies, with non-temporal stores where so much is copied that the cache would be of no use.
// Either way the bytes are written when it returns, as with memcpy: a store with release order
// publishes them.
void copy(MutByteView into, ByteView from);

// One piece of a copy of `whole` bytes.
void copy_part(MutByteView into, ByteView from, std::size_t whole);

// "AVX3", "AVX2", "SSE4", …: what was chosen on this machine.
const char* kernel_target();

}  // namespace corro::runtime
