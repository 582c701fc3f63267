#include "runtime/collective/kernels.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/assert.h"

namespace corro::runtime {

namespace {

template <class T>
std::span<T> elements(MutByteView bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <class T>
std::span<const T> elements(ByteView bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

template <class T, class Combine>
void combine(MutByteView into_bytes, ByteView from_bytes) {
  T* __restrict into = elements<T>(into_bytes).data();
  const T* __restrict from = elements<T>(from_bytes).data();
  const std::size_t n = into_bytes.size() / sizeof(T);
  for (std::size_t i = 0; i < n; ++i) into[i] = Combine{}(into[i], from[i]);
}

template <class T>
void divide(MutByteView data, int ranks) {
  for (T& x : elements<T>(data)) x /= static_cast<T>(ranks);
}

using Kernel = void (*)(MutByteView, ByteView);

// By type and reduction, in the order of their enumerators.
constexpr std::array<std::array<Kernel, 4>, 2> kKernels = {{
    {combine<float, Sum>, combine<float, Sum>, combine<float, Min>, combine<float, Max>},
    {combine<double, Sum>, combine<double, Sum>, combine<double, Min>, combine<double, Max>},
}};

}  // namespace

void reduce(Reduction reduction, DataType type, MutByteView into, ByteView from) {
  CORRO_ASSERT(into.size() == from.size() && into.size() % size_of(type) == 0);
  kKernels[static_cast<std::size_t>(type)][static_cast<std::size_t>(reduction)](into, from);
}

void finish(Reduction reduction, DataType type, MutByteView data, int ranks) {
  if (reduction != Reduction::average) return;
  if (type == DataType::f32)
    divide<float>(data, ranks);
  else
    divide<double>(data, ranks);
}

}  // namespace corro::runtime
