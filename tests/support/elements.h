#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "runtime/op/op.h"

// Elements of every type as small whole numbers, which each type holds exactly, so that results
// can be compared to the bit with the plainest arithmetic.
namespace corro::runtime {

inline std::uint16_t half_of(long value) {
  if (value == 0) return 0;
  const std::uint16_t sign = value < 0 ? 0x8000 : 0;
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(std::labs(value)), &exponent);
  const auto mantissa = static_cast<std::uint16_t>(std::lround((fraction * 2 - 1) * 1024));
  return static_cast<std::uint16_t>(sign | ((exponent - 1 + 15) << 10) | mantissa);
}

inline std::uint16_t bfloat_of(long value) {
  const auto wide = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &wide, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

template <class T>
void put(Bytes& to, T value) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

inline void put_element(Bytes& to, DataType type, long value) {
  switch (type) {
    case DataType::u8:
    case DataType::i8:
      return put(to, static_cast<std::uint8_t>(value));
    case DataType::u16:
    case DataType::i16:
      return put(to, static_cast<std::uint16_t>(value));
    case DataType::u32:
    case DataType::i32:
      return put(to, static_cast<std::uint32_t>(value));
    case DataType::u64:
    case DataType::i64:
      return put(to, static_cast<std::uint64_t>(value));
    case DataType::f16:
      return put(to, half_of(value));
    case DataType::bf16:
      return put(to, bfloat_of(value));
    case DataType::f32:
      return put(to, static_cast<float>(value));
    case DataType::f64:
      return put(to, static_cast<double>(value));
    case DataType::boolean:
      return put(to, static_cast<std::uint8_t>(value != 0));
  }
}

inline long combined(DataType type, Reduction reduction, long a, long b) {
  const bool logical = type == DataType::boolean;
  switch (reduction) {
    case Reduction::min:
      return std::min(a, b);
    case Reduction::max:
      return std::max(a, b);
    case Reduction::product:
      return logical ? (a && b) : a * b;
    case Reduction::bit_and:
      return a & b;
    case Reduction::bit_or:
      return a | b;
    default:
      return logical ? (a || b) : a + b;
  }
}

inline bool is_float(DataType type) {
  return type == DataType::f16 || type == DataType::bf16 || type == DataType::f32 ||
         type == DataType::f64;
}

inline bool takes(DataType type, Reduction reduction) {
  if (reduction == Reduction::adasum) return false;  // has tests of its own
  if (reduction == Reduction::average) return type != DataType::boolean;
  if (reduction == Reduction::bit_and || reduction == Reduction::bit_or) return !is_float(type);
  return true;
}

}  // namespace corro::runtime
