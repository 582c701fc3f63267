#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "base/bytes.h"
#include "runtime/op/op.h"

// What the kernels must compute, written for clarity: one element at a time, from values and not
// from bits.
namespace corro::runtime::reference {

inline constexpr DataType kTypes[] = {
    DataType::u8,  DataType::i8,  DataType::u16,    DataType::i16, DataType::u32,
    DataType::i32, DataType::u64, DataType::i64,    DataType::f16, DataType::bf16,
    DataType::f32, DataType::f64, DataType::boolean};
inline constexpr DataType kFloats[] = {DataType::f16, DataType::bf16, DataType::f32, DataType::f64};
inline constexpr Reduction kReductions[] = {Reduction::sum,     Reduction::min,
                                            Reduction::max,     Reduction::product,
                                            Reduction::bit_and, Reduction::bit_or};

bool floating(DataType);
bool taken(Reduction, DataType);

// A float as a value; f64 holds every value of the others.
double float_at(DataType, ByteView, std::size_t index);
// Rounds to nearest even.  Every NaN is the same one.
void put_float(DataType, MutByteView, std::size_t index, double);

// One element after the other, one source after the other.
Bytes reduced(Reduction, DataType, const std::vector<Bytes>& sources);

// Elements among which are infinities, NaNs, zeros of both signs and subnormals, and small values
// that keep sums and products away from these.
Bytes elements(DataType, std::size_t count, std::mt19937_64&);

}  // namespace corro::runtime::reference
