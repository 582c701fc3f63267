#include "tests/unit/runtime/op/reference.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace corro::runtime::reference {

namespace {

struct Layout {
  int fraction_bits, bias;
};

Layout layout_of(DataType type) {
  switch (type) {
    case DataType::f16:
      return {10, 15};
    case DataType::bf16:
      return {7, 127};
    case DataType::f32:
      return {23, 127};
    default:
      return {52, 1023};
  }
}

std::uint64_t raw_at(DataType type, ByteView data, std::size_t index) {
  std::uint64_t raw = 0;
  std::memcpy(&raw, data.data() + index * size_of(type), size_of(type));
  return raw;
}

void put_raw(DataType type, MutByteView data, std::size_t index, std::uint64_t raw) {
  std::memcpy(data.data() + index * size_of(type), &raw, size_of(type));
}

bool is_signed(DataType type) {
  return type == DataType::i8 || type == DataType::i16 || type == DataType::i32 ||
         type == DataType::i64;
}

// As 64 bits, with the sign extended.
std::uint64_t integer_at(DataType type, ByteView data, std::size_t index) {
  const std::uint64_t raw = raw_at(type, data, index);
  const std::size_t unused = 64 - 8 * size_of(type);
  if (!is_signed(type)) return raw;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(raw << unused) >>
                                    static_cast<int>(unused));
}

std::uint64_t of_integers(Reduction reduction, DataType type, std::uint64_t a, std::uint64_t b) {
  const bool less =
      is_signed(type) ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
  switch (reduction) {
    case Reduction::sum:
      return a + b;
    case Reduction::product:
      return a * b;
    case Reduction::min:
      return less ? a : b;
    case Reduction::max:
      return less ? b : a;
    case Reduction::bit_and:
      return a & b;
    default:
      return a | b;
  }
}

bool of_booleans(Reduction reduction, bool a, bool b) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::max:
    case Reduction::bit_or:
      return a || b;
    default:
      return a && b;
  }
}

double of_floats(Reduction reduction, double a, double b) {
  if (reduction == Reduction::sum) return a + b;
  if (reduction == Reduction::product) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  const bool a_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return (reduction == Reduction::min) == a_less ? a : b;
}

}  // namespace

bool floating(DataType type) {
  return type == DataType::f16 || type == DataType::bf16 || type == DataType::f32 ||
         type == DataType::f64;
}

bool taken(Reduction reduction, DataType type) {
  const bool bits = reduction == Reduction::bit_and || reduction == Reduction::bit_or;
  return !(bits && floating(type));
}

double float_at(DataType type, ByteView data, std::size_t index) {
  const auto [fraction_bits, bias] = layout_of(type);
  const std::uint64_t raw = raw_at(type, data, index);
  const std::uint64_t fraction = raw & ((1ull << fraction_bits) - 1);
  const int exponents = 2 * bias + 1;
  const int exponent = static_cast<int>(raw >> fraction_bits) & exponents;
  const bool negative = raw >> (8 * size_of(type) - 1);

  double value = 0;
  if (exponent == exponents)
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    value = std::ldexp(static_cast<double>(fraction), 1 - bias - fraction_bits);
  else
    value = std::ldexp(static_cast<double>(fraction + (1ull << fraction_bits)),
                       exponent - bias - fraction_bits);
  return negative ? -value : value;
}

void put_float(DataType type, MutByteView data, std::size_t index, double value) {
  const auto [fraction_bits, bias] = layout_of(type);
  const std::uint64_t infinite = static_cast<std::uint64_t>(2 * bias + 1) << fraction_bits;
  const double size = std::fabs(value);
  std::uint64_t raw = infinite;
  if (std::isnan(value)) {
    put_raw(type, data, index, infinite | 1ull << (fraction_bits - 1));
    return;
  }
  if (size == 0) {
    raw = 0;
  } else if (std::isfinite(value)) {
    const int exponent = std::max(std::ilogb(size), 1 - bias);
    // In units of the last place: a whole number below twice 2^fraction_bits, or just that.
    const double units = std::nearbyint(std::ldexp(size, fraction_bits - exponent));
    raw = (static_cast<std::uint64_t>(exponent + bias - 1) << fraction_bits) +
          static_cast<std::uint64_t>(units);
    raw = std::min(raw, infinite);
  }
  if (std::signbit(value)) raw |= 1ull << (8 * size_of(type) - 1);
  put_raw(type, data, index, raw);
}

Bytes reduced(Reduction reduction, DataType type, const std::vector<Bytes>& sources) {
  Bytes into(sources[0].size());
  for (std::size_t i = 0; i < into.size() / size_of(type); ++i) {
    if (type == DataType::boolean) {
      bool value = sources[0][i] != 0;
      for (const Bytes& source : sources) value = of_booleans(reduction, value, source[i] != 0);
      into[i] = value ? 1 : 0;
    } else if (floating(type)) {
      double value = float_at(type, sources[0], i);
      for (std::size_t s = 1; s < sources.size(); ++s) {
        value = of_floats(reduction, value, float_at(type, sources[s], i));
        if (type != DataType::f64) value = static_cast<float>(value);  // f16 and bf16 too
      }
      put_float(type, into, i, value);
    } else {
      std::uint64_t value = integer_at(type, sources[0], i);
      for (std::size_t s = 1; s < sources.size(); ++s)
        value = of_integers(reduction, type, value, integer_at(type, sources[s], i));
      put_raw(type, into, i, value);
    }
  }
  return into;
}

Bytes elements(DataType type, std::size_t count, std::mt19937_64& random) {
  Bytes data(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random();
    if (!floating(type) || bits % 4 == 0) {
      put_raw(type, data, i, bits % 8 == 0 ? random() % 3 : random());
    } else if (bits % 16 == 1) {
      constexpr double kSpecial[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-7, -3e-41, 65519};
      put_float(type, data, i, kSpecial[random() % 8]);
    } else {
      put_float(type, data, i, std::ldexp(static_cast<double>(random() % 4096) - 2048, -9));
    }
  }
  return data;
}

}  // namespace corro::runtime::reference
