#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/op/op.h"

// The kernels for one instruction set.  For kernels.cc, which checks sizes and picks a function,
// and for tests, which run every table that this CPU can.
namespace corro::runtime {

struct KernelTable {
  // All sizes are in bytes, and whole elements.
  using Reduce = void (*)(std::uint8_t* into, const std::uint8_t* const* sources, std::size_t count,
                          std::size_t bytes);
  using Scale = void (*)(std::uint8_t* into, const std::uint8_t* from, std::size_t bytes,
                         double divisor, double factor);
  using Dot = double (*)(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes);
  using Combine = void (*)(std::uint8_t* into, double x, const std::uint8_t* a, double y,
                           const std::uint8_t* b, std::size_t bytes);
  using Copy = void (*)(std::uint8_t* into, const std::uint8_t* from, std::size_t bytes);

  struct Arithmetic {
    Scale divide = nullptr;    // from / divisor * factor
    Scale multiply = nullptr;  // from * factor
    Dot dot = nullptr;
    Combine combine = nullptr;
  };

  const char* target = "";
  // Indexed by DataType, then Reduction.  Empty: what `invalid` refuses, average (which is a sum)
  // and adasum.
  using Row = std::array<Reduce, 8>;
  std::array<Row, 13> reducers;
  std::array<Arithmetic, 13> arithmetic;  // empty for integers and bool
  Copy stream = nullptr;                  // past the cache, and visible to others before it returns

  Reduce reducer(DataType, Reduction) const;
  const Arithmetic& of(DataType) const;
};

// What kernels_simd.cc was compiled for; nullptr: not compiled, because all CPUs have better.
struct CompiledTables {
  const KernelTable *avx3, *avx2, *sse4, *plain;
};
CompiledTables compiled_tables();

// Those that this CPU can run, the best first.
std::span<const KernelTable* const> kernel_tables();

}  // namespace corro::runtime
