// Compiled once for each instruction set: foreach_target.h includes this file again and again, each
// time with another HWY_NAMESPACE.  Vector code stands between HWY_BEFORE_NAMESPACE and
// HWY_AFTER_NAMESPACE, where the compiler may use that instruction set; everything it calls must be
// there too, or it would be compiled for the plainest CPU.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/op/kernels_simd.cc"

// SSSE3 serves CPUs of 2006 alone.  SSE4 needs no AES here.  Elsewhere than on x86 we do not detect
// CPUs, so there is one table.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_SSSE3
#define HWY_DISABLE_PCLMUL_AES
#ifndef __x86_64__
#define HWY_COMPILE_ONLY_STATIC
#endif
#endif

// clang-format off: the order is Highway's
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include <hwy/cache_control.h>

#include <cstring>
#include <type_traits>

#include "base/assert.h"
#include "runtime/op/kernel_table.h"

HWY_BEFORE_NAMESPACE();
namespace corro::runtime::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using U8 = std::uint8_t;

template <class T>
using Widest = hn::ScalableTag<T>;

#include "runtime/op/kernel_formats.inc"

// ---- Reductions of two vectors.

struct Sum {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Add(a, b);
  }
};

struct Product {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D d, V a, V b) {
    if constexpr (sizeof(hn::TFromD<D>) != 1)
      return hn::Mul(a, b);
    else if constexpr (hn::MaxLanes(D()) == 1)
      return hn::Set(d, static_cast<U8>(hn::GetLane(a) * hn::GetLane(b)));
    else
      return bytes(d, a, b);
  }

 private:
  // No instruction multiplies bytes: even and odd ones apart, as the low halves of wider products.
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V bytes(D d, V a, V b) {
    const hn::RepartitionToWide<D> wide;
    const auto aa = hn::BitCast(wide, a), bb = hn::BitCast(wide, b);
    const auto even = hn::And(hn::Mul(aa, bb), hn::Set(wide, std::uint16_t{0xff}));
    const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(aa), hn::ShiftRight<8>(bb)));
    return hn::BitCast(d, hn::Or(even, odd));
  }
};

// Of floats: a NaN wins over all, and -0 is less than +0.  x86's own minimum depends on the order
// of the operands in both cases.
struct Min {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D, V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      V least = hn::IfThenElse(hn::Lt(a, b), a, b);               // b if one is a NaN
      least = hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), least);  // equal: same bits, or zeros
      return hn::IfThenElse(hn::IsNaN(a), a, least);
    } else {
      return hn::Min(a, b);
    }
  }
};

struct Max {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D, V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      V most = hn::IfThenElse(hn::Lt(b, a), a, b);
      most = hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), most);
      return hn::IfThenElse(hn::IsNaN(a), a, most);
    } else {
      return hn::Max(a, b);
    }
  }
};

struct BitAnd {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::And(a, b);
  }
};

struct BitOr {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Or(a, b);
  }
};

// ---- Inputs: the vector that a kernel computes for the elements at an offset in bytes.

template <class V>
struct Four {
  V v0, v1, v2, v3;
};

template <class Derived>
struct Input {
  template <class Format, class D>
  HWY_INLINE Four<hn::Vec<D>> four(D d, std::size_t at, std::size_t step) const {
    const auto& self = static_cast<const Derived&>(*this);
    return {self.template one<Format>(d, at), self.template one<Format>(d, at + step),
            self.template one<Format>(d, at + 2 * step),
            self.template one<Format>(d, at + 3 * step)};
  }
};

template <class Op>
struct Reduced {
  const U8* const* sources;
  std::size_t count;
  std::size_t begin = 0;

  template <class Format, class D>
  HWY_INLINE hn::Vec<D> one(D d, std::size_t at) const {
    auto v = Format::load(d, sources[0] + begin + at);
    for (std::size_t i = 1; i < count; ++i)
      v = Op::apply(d, v, Format::load(d, sources[i] + begin + at));
    return v;
  }
  template <class Format, class D>
  HWY_INLINE Four<hn::Vec<D>> four(D d, std::size_t at, std::size_t step) const {
    const U8* from = sources[0] + begin + at;
    auto v0 = Format::load(d, from), v1 = Format::load(d, from + step);
    auto v2 = Format::load(d, from + 2 * step), v3 = Format::load(d, from + 3 * step);
    for (std::size_t i = 1; i < count; ++i) {
      from = sources[i] + begin + at;
      v0 = Op::apply(d, v0, Format::load(d, from));
      v1 = Op::apply(d, v1, Format::load(d, from + step));
      v2 = Op::apply(d, v2, Format::load(d, from + 2 * step));
      v3 = Op::apply(d, v3, Format::load(d, from + 3 * step));
    }
    return {v0, v1, v2, v3};
  }
};

template <bool kDivide, class Lane>
struct Scaled : Input<Scaled<kDivide, Lane>> {
  const U8* from;
  Lane divisor, factor;

  HWY_INLINE Scaled(const U8* f, double by, double times)
      : from(f), divisor(static_cast<Lane>(by)), factor(static_cast<Lane>(times)) {}
  template <class Format, class D>
  HWY_INLINE hn::Vec<D> one(D d, std::size_t at) const {
    auto v = Format::load(d, from + at);
    if constexpr (kDivide) v = hn::Div(v, hn::Set(d, divisor));
    return hn::Mul(v, hn::Set(d, factor));
  }
};

template <class Lane>
struct Combined : Input<Combined<Lane>> {
  const U8 *a, *b;
  Lane x, y;

  HWY_INLINE Combined(double xx, const U8* aa, double yy, const U8* bb)
      : a(aa), b(bb), x(static_cast<Lane>(xx)), y(static_cast<Lane>(yy)) {}
  template <class Format, class D>
  HWY_INLINE hn::Vec<D> one(D d, std::size_t at) const {
    return hn::Add(hn::Mul(hn::Set(d, x), Format::load(d, a + at)),
                   hn::Mul(hn::Set(d, y), Format::load(d, b + at)));
  }
};

// ---- Loops.

// Vectors side by side.  Where they do not divide the data, the last one overlaps the one before
// it; it is computed before anything is written, since `into` may be an input.  At least one
// vector.
template <class Format, class D, class In>
HWY_INLINE void run_vectors(D d, U8* into, const In& in, std::size_t bytes) {
  constexpr std::size_t kStep = hn::MaxLanes(D()) * Format::kBytes;
  const auto last = in.template one<Format>(d, bytes - kStep);
  std::size_t at = 0;
  if constexpr (hn::MaxLanes(D()) == hn::MaxLanes(Widest<typename Format::Lane>()))
    for (; at + 4 * kStep <= bytes; at += 4 * kStep) {
      const auto v = in.template four<Format>(d, at, kStep);
      Format::store(d, v.v0, into + at);
      Format::store(d, v.v1, into + at + kStep);
      Format::store(d, v.v2, into + at + 2 * kStep);
      Format::store(d, v.v3, into + at + 3 * kStep);
    }
  for (; at + kStep < bytes; at += kStep)
    Format::store(d, in.template one<Format>(d, at), into + at);
  Format::store(d, last, into + (bytes - kStep));
}

// In the widest vectors; what is shorter than one in vectors of 16 bytes; what is shorter still one
// by one.
template <class Format, class In>
HWY_INLINE void run(U8* into, const In& in, std::size_t bytes) {
  using Lane = typename Format::Lane;
  const Widest<Lane> wide;
  const hn::CappedTag<Lane, 16 / sizeof(Lane)> narrow;
  const hn::CappedTag<Lane, 1> single;
  if (bytes >= hn::MaxLanes(Widest<Lane>()) * Format::kBytes)
    return run_vectors<Format>(wide, into, in, bytes);
  if constexpr (hn::MaxLanes(Widest<Lane>()) > 16 / sizeof(Lane))
    if (bytes >= 16 / sizeof(Lane) * Format::kBytes)
      return run_vectors<Format>(narrow, into, in, bytes);
  for (std::size_t at = 0; at < bytes; at += Format::kBytes)
    Format::store(single, in.template one<Format>(single, at), into + at);
}

// ---- What the table points to.

template <class Format, class Op>
void reduced(U8* into, const U8* const* sources, std::size_t count, std::size_t bytes) {
  run<Format>(into, Reduced<Op>{sources, count}, bytes);
}

template <class Op>
void reduced_bf16(U8* into, const U8* const* sources, std::size_t count, std::size_t bytes) {
  const Widest<float> d;
  const Widest<std::uint32_t> d32;
  constexpr std::size_t kStep = hn::MaxLanes(Widest<float>()) * 4;
  std::size_t at = 0;
  for (; at + kStep <= bytes; at += kStep) {
    auto pairs = load_bits(d32, sources[0] + at);
    auto evens = Bf16::even(d, pairs), odds = Bf16::odd(d, pairs);
    for (std::size_t i = 1; i < count; ++i) {
      pairs = load_bits(d32, sources[i] + at);
      evens = Op::apply(d, evens, Bf16::even(d, pairs));
      odds = Op::apply(d, odds, Bf16::odd(d, pairs));
    }
    Bf16::store_pairs(d, evens, odds, into + at);
  }
  run<Bf16>(into + at, Reduced<Op>{sources, count, at}, bytes - at);
}

template <class Format, bool kDivide>
void scaled(U8* into, const U8* from, std::size_t bytes, double divisor, double factor) {
  run<Format>(into, Scaled<kDivide, typename Format::Lane>(from, divisor, factor), bytes);
}

template <class Format>
void combined(U8* into, double x, const U8* a, double y, const U8* b, std::size_t bytes) {
  run<Format>(into, Combined<typename Format::Lane>(x, a, y, b), bytes);
}

template <class Format, class D>
HWY_INLINE hn::Vec<D> load_double(D d, const U8* from) {
  if constexpr (std::is_same_v<typename Format::Lane, double>)
    return Format::load(d, from);
  else
    return hn::PromoteTo(d, Format::load(hn::Rebind<float, D>(), from));
}

// Sixteen sums side by side, however wide a vector is, so that all instruction sets give the same
// bits.
template <class Format>
double dot(const U8* a, const U8* b, std::size_t bytes) {
  constexpr std::size_t kSums = 16, kBlock = kSums * Format::kBytes;
  const Widest<double> d;
  constexpr std::size_t kLanes = hn::MaxLanes(decltype(d)());
  using V = hn::Vec<decltype(d)>;

  V sums[kSums / kLanes];
  for (V& sum : sums) sum = hn::Zero(d);
  const auto add = [&](const U8* x, const U8* y) HWY_ATTR {
    for (std::size_t i = 0; i < kSums / kLanes; ++i) {
      const std::size_t at = i * kLanes * Format::kBytes;
      sums[i] =
          hn::Add(sums[i], hn::Mul(load_double<Format>(d, x + at), load_double<Format>(d, y + at)));
    }
  };

  std::size_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) add(a + at, b + at);
  if (at < bytes) {
    U8 rest_a[kBlock] = {}, rest_b[kBlock] = {};
    std::memcpy(rest_a, a + at, bytes - at);
    std::memcpy(rest_b, b + at, bytes - at);
    add(rest_a, rest_b);
  }

  double lanes[kSums];
  for (std::size_t i = 0; i < kSums / kLanes; ++i)
    store_bits(d, sums[i], reinterpret_cast<U8*>(lanes + i * kLanes));
  for (std::size_t half = kSums / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

void stream(U8* into, const U8* from, std::size_t bytes) {
  const Widest<U8> d;
  constexpr std::size_t kStep = hn::MaxLanes(decltype(d)());
  constexpr std::size_t kLine = 64;
  const std::size_t head = (0 - reinterpret_cast<std::uintptr_t>(into)) % kLine;
  if (bytes < head + kLine) {
    std::memcpy(into, from, bytes);
    return;
  }
  std::memcpy(into, from, head);
  std::size_t at = head;
  // Whole lines only: a line that is written in part costs a read.
  for (; at + kLine <= bytes; at += kLine)
    for (std::size_t i = 0; i < kLine; i += kStep)
      hn::Stream(hn::LoadU(d, from + at + i), d, into + at + i);
  std::memcpy(into + at, from + at, bytes - at);
  hwy::FlushStream();  // before a flag that says that the data is there
}

// ---- The table.

constexpr std::size_t index_of(Reduction reduction) {
  return static_cast<std::size_t>(reduction);
}

// Sums and products wrap, so they are the same for signed and unsigned; bits are the same in all.
template <class T>
constexpr KernelTable::Row integer_row() {
  using Unsigned = Plain<std::make_unsigned_t<T>>;
  KernelTable::Row row{};
  row[index_of(Reduction::sum)] = reduced<Unsigned, Sum>;
  row[index_of(Reduction::min)] = reduced<Plain<T>, Min>;
  row[index_of(Reduction::max)] = reduced<Plain<T>, Max>;
  row[index_of(Reduction::product)] = reduced<Unsigned, Product>;
  row[index_of(Reduction::bit_and)] = reduced<Plain<U8>, BitAnd>;
  row[index_of(Reduction::bit_or)] = reduced<Plain<U8>, BitOr>;
  return row;
}

template <class Format, class Op>
constexpr KernelTable::Reduce float_reduced() {
  if constexpr (std::is_same_v<Format, Bf16>)
    return reduced_bf16<Op>;
  else
    return reduced<Format, Op>;
}

template <class Format>
constexpr KernelTable::Row float_row() {
  KernelTable::Row row{};
  row[index_of(Reduction::sum)] = float_reduced<Format, Sum>();
  row[index_of(Reduction::min)] = float_reduced<Format, Min>();
  row[index_of(Reduction::max)] = float_reduced<Format, Max>();
  row[index_of(Reduction::product)] = float_reduced<Format, Product>();
  return row;
}

// The lesser of two bytes is not 0 if both are not.
constexpr KernelTable::Row boolean_row() {
  constexpr KernelTable::Reduce any = reduced<Boolean, BitOr>, all = reduced<Boolean, Min>;
  KernelTable::Row row{};
  row[index_of(Reduction::sum)] = row[index_of(Reduction::max)] = row[index_of(Reduction::bit_or)] =
      any;
  row[index_of(Reduction::product)] = row[index_of(Reduction::min)] =
      row[index_of(Reduction::bit_and)] = all;
  return row;
}

template <class Format>
constexpr KernelTable::Arithmetic arithmetic() {
  return {scaled<Format, true>, scaled<Format, false>, dot<Format>, combined<Format>};
}

inline constinit const KernelTable kTable = {
    &HWY_STR(HWY_NAMESPACE)[2],  // after "N_"
    {integer_row<std::uint8_t>(), integer_row<std::int8_t>(), integer_row<std::uint16_t>(),
     integer_row<std::int16_t>(), integer_row<std::uint32_t>(), integer_row<std::int32_t>(),
     integer_row<std::uint64_t>(), integer_row<std::int64_t>(), float_row<F16>(), float_row<Bf16>(),
     float_row<Plain<float>>(), float_row<Plain<double>>(), boolean_row()},
    {{{},
      {},
      {},
      {},
      {},
      {},
      {},
      {},
      arithmetic<F16>(),
      arithmetic<Bf16>(),
      arithmetic<Plain<float>>(),
      arithmetic<Plain<double>>(),
      {}}},
    stream,
};

}  // namespace corro::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace corro::runtime {

CompiledTables compiled_tables() {
  return {HWY_CHOOSE_AVX3(kTable), HWY_CHOOSE_AVX2(kTable), HWY_CHOOSE_SSE4(kTable),
          HWY_CHOOSE_FALLBACK(kTable)};
}

}  // namespace corro::runtime

namespace hwy {

// What Highway's assertions call, in builds that have them; its library is not linked.
void Abort(const char* file, int line, const char*, ...) {
  corro::assertion_failed("Highway", file, line);
}

}  // namespace hwy
#endif
