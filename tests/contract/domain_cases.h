#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/domain/domain.h"
#include "runtime/domain/waiting.h"
#include "runtime/op/op.h"

// Operations for a domain, with what must come out of them, computed in the plainest way.
namespace corro::runtime {

// ---- elements as numbers ------------------------------------------------------------------------

inline double half_to_double(std::uint16_t h) {
  const int exponent = (h >> 10) & 31, fraction = h & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

// Of whole numbers up to 2,048, which is all that is needed here.
inline std::uint16_t half_of(int n) {
  if (n == 0) return 0;
  const int exponent = std::bit_width(static_cast<unsigned>(n)) - 1;
  const int fraction = static_cast<int>(std::ldexp(n, 10 - exponent)) - 1024;
  return static_cast<std::uint16_t>(((exponent + 15) << 10) + fraction);
}

template <class T>
double number(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

inline double element(DataType type, const std::uint8_t* at) {
  switch (type) {
    case DataType::u8:
    case DataType::boolean:
      return number<std::uint8_t>(at);
    case DataType::i8:
      return number<std::int8_t>(at);
    case DataType::u16:
      return number<std::uint16_t>(at);
    case DataType::i16:
      return number<std::int16_t>(at);
    case DataType::u32:
      return number<std::uint32_t>(at);
    case DataType::i32:
      return number<std::int32_t>(at);
    case DataType::u64:
      return number<std::uint64_t>(at);
    case DataType::i64:
      return number<std::int64_t>(at);
    case DataType::f16:
      return half_to_double(static_cast<std::uint16_t>(number<std::uint16_t>(at)));
    case DataType::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(number<std::uint16_t>(at)) << 16);
    case DataType::f32:
      return number<float>(at);
    case DataType::f64:
      return number<double>(at);
  }
  return 0;
}

template <class T>
void put_number(std::uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

inline void put_element(DataType type, std::uint8_t* at, int n) {
  switch (type) {
    case DataType::u8:
    case DataType::i8:
      return put_number(at, static_cast<std::uint8_t>(n));
    case DataType::boolean:
      return put_number(at, static_cast<std::uint8_t>(n % 2));
    case DataType::u16:
    case DataType::i16:
      return put_number(at, static_cast<std::uint16_t>(n));
    case DataType::u32:
    case DataType::i32:
      return put_number(at, static_cast<std::uint32_t>(n));
    case DataType::u64:
    case DataType::i64:
      return put_number(at, static_cast<std::uint64_t>(n));
    case DataType::f16:
      return put_number(at, half_of(n));
    case DataType::bf16:
      return put_number(at, static_cast<std::uint16_t>(
                                std::bit_cast<std::uint32_t>(static_cast<float>(n)) >> 16));
    case DataType::f32:
      return put_number(at, static_cast<float>(n));
    case DataType::f64:
      return put_number(at, static_cast<double>(n));
  }
}

// ---- cases --------------------------------------------------------------------------------------

struct DomainCase {
  Operation operation;  // of one rank; `all_sends` has the rest
  std::vector<std::vector<std::uint64_t>> all_sends;
  bool in_place = false, pieces = false;
  int number = 0;

  std::string text() const {
    std::ostringstream out;
    out << "case " << number << ": " << operation.shape.text() << (in_place ? " in place" : "")
        << (pieces ? " in pieces" : "");
    return out.str();
  }
};

// Element i of rank r's input: small whole numbers, so that sums are exact in every type.
inline int value_of(const DomainCase& test, int rank, std::uint64_t i) {
  const std::uint64_t x =
      i * 7 + static_cast<std::uint64_t>(rank) * 5 + static_cast<std::uint64_t>(test.number);
  return test.operation.shape.reduction == Reduction::product ? static_cast<int>(1 + x % 2)
                                                              : static_cast<int>(x % 13);
}

inline double reference_of(const DomainCase& test, int ranks, std::uint64_t i) {
  const Shape& shape = test.operation.shape;
  const bool truth = shape.type == DataType::boolean;
  const bool floating = shape.type == DataType::f16 || shape.type == DataType::bf16 ||
                        shape.type == DataType::f32 || shape.type == DataType::f64;
  double total = 0;
  for (int r = 0; r < ranks; ++r) {
    double x = value_of(test, r, i) * shape.prescale;
    if (truth) x = value_of(test, r, i) % 2;
    if (!floating) x = std::trunc(x);
    const auto a = static_cast<long>(total), b = static_cast<long>(x);
    if (r == 0)
      total = x;
    else
      switch (shape.reduction) {
        case Reduction::sum:
        case Reduction::average:
          total = truth ? std::max(total, x) : total + x;
          break;
        case Reduction::min:
          total = std::min(total, x);
          break;
        case Reduction::max:
          total = std::max(total, x);
          break;
        case Reduction::product:
          total *= x;
          break;
        case Reduction::bit_and:
          total = static_cast<double>(a & b);
          break;
        case Reduction::bit_or:
          total = static_cast<double>(a | b);
          break;
        case Reduction::adasum:
          break;
      }
  }
  if (shape.reduction == Reduction::average) total /= ranks;
  if (!floating) total = std::trunc(total);
  total *= shape.postscale;
  return floating ? total : std::trunc(total);
}

inline bool close_enough(DataType type, double got, double expected) {
  double tolerance = 0;
  if (type == DataType::f16) tolerance = 0.002;
  if (type == DataType::bf16) tolerance = 0.02;
  if (type == DataType::f32) tolerance = 1e-6;
  if (type == DataType::f64) tolerance = 1e-12;
  return std::abs(got - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

// A buffer of a test: contiguous, or in pieces of odd lengths with gaps between them.  One byte
// off alignment.
struct TestBuffer {
  std::vector<std::uint8_t> memory;
  std::vector<std::span<std::uint8_t>> parts;

  TestBuffer(std::size_t bytes, std::size_t unit, bool pieces, unsigned seed)
      : memory(bytes * 2 + 4096, 0xEE) {
    std::uint8_t* at = memory.data() + 1;
    if (!pieces) {
      parts = {{at, bytes}};
      return;
    }
    std::minstd_rand random(seed);
    for (std::size_t left = bytes; left > 0;) {
      const std::size_t most = std::max<std::size_t>(1, bytes / unit / 5);
      const std::size_t n = std::min(left, (1 + random() % most) * unit);
      parts.emplace_back(at, n);
      at += n + random() % 7;
      if (at + left > memory.data() + memory.size()) at = parts.back().data() + n;
      left -= n;
    }
  }

  MutPieces mut() const { return MutPieces(parts); }
  Pieces view() const {
    std::vector<std::span<const std::uint8_t>> out(parts.begin(), parts.end());
    return Pieces(std::move(out));
  }
  Pieces view(Range bytes) const {
    std::vector<std::span<const std::uint8_t>> out;
    mut().each(bytes, [&](auto part) { out.emplace_back(part); });
    return Pieces(std::move(out));
  }
  void put(const std::vector<std::uint8_t>& bytes, std::size_t at = 0) {
    std::size_t next = 0;
    mut().each({at, at + bytes.size()}, [&](auto part) {
      std::memcpy(part.data(), bytes.data() + next, part.size());
      next += part.size();
    });
  }
  std::vector<std::uint8_t> get() const {
    std::vector<std::uint8_t> out;
    for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
  }
};

inline Operation operation_of(const DomainCase& test, int rank) {
  Operation out = test.operation;
  if (out.shape.kind != Kind::alltoall) return out;
  const auto me = static_cast<std::size_t>(rank);
  out.sends = test.all_sends[me];
  out.receives.clear();
  for (const auto& sends : test.all_sends) out.receives.push_back(sends[me]);
  return out;
}

inline std::vector<std::uint8_t> input_of(const DomainCase& test, int rank, std::size_t bytes) {
  const Shape& shape = test.operation.shape;
  std::vector<std::uint8_t> out(bytes);
  const std::size_t unit = size_of(shape.type);
  for (std::size_t i = 0; i < bytes / unit; ++i)
    put_element(shape.type, out.data() + i * unit, value_of(test, rank, i));
  return out;
}

// The first element of a rank's output that is wrong, in words; empty: all are right.
inline std::string wrong_in(const DomainCase& test, int rank, int ranks,
                            const std::vector<std::uint8_t>& out) {
  const Shape& shape = test.operation.shape;
  const std::size_t unit = size_of(shape.type);
  const auto complain = [&](std::uint64_t i, double got, double expected) {
    std::ostringstream text;
    text << test.text() << ", rank " << rank << " of " << ranks << ": element " << i << " of "
         << out.size() / unit << " is " << got << ", not " << expected;
    return text.str();
  };
  const auto check = [&](std::uint64_t i, double expected) -> std::string {
    const double got = element(shape.type, out.data() + i * unit);
    return close_enough(shape.type, got, expected) ? "" : complain(i, got, expected);
  };
  const auto plain = [&](int r, std::uint64_t i) {
    const double x = value_of(test, r, i);
    return shape.type == DataType::boolean ? std::fmod(x, 2) : x;
  };
  std::string wrong;
  std::uint64_t at = 0;
  switch (shape.kind) {
    case Kind::allreduce:
      for (std::uint64_t i = 0; i < shape.count && wrong.empty(); ++i)
        wrong = check(i, reference_of(test, ranks, i));
      return wrong;
    case Kind::reducescatter: {
      const auto me = static_cast<std::size_t>(rank);
      for (std::size_t k = 0; k < me; ++k) at += shape.parts[k];
      for (std::uint64_t i = 0; i < shape.parts[me] && wrong.empty(); ++i)
        wrong = check(i, reference_of(test, ranks, at + i));
      return wrong;
    }
    case Kind::allgather:
      for (int r = 0; r < ranks; ++r)
        for (std::uint64_t i = 0; i < shape.parts[static_cast<std::size_t>(r)]; ++i, ++at)
          if (wrong.empty()) wrong = check(at, plain(r, i));
      return wrong;
    case Kind::broadcast:
      for (std::uint64_t i = 0; i < shape.count && wrong.empty(); ++i)
        wrong = check(i, plain(shape.root, i));
      return wrong;
    case Kind::alltoall:
      for (int r = 0; r < ranks; ++r) {
        const auto& sends = test.all_sends[static_cast<std::size_t>(r)];
        std::uint64_t from = 0;
        for (int k = 0; k < rank; ++k) from += sends[static_cast<std::size_t>(k)];
        for (std::uint64_t i = 0; i < sends[static_cast<std::size_t>(rank)]; ++i, ++at)
          if (wrong.empty()) wrong = check(at, plain(r, from + i));
      }
      return wrong;
    case Kind::barrier:
      return wrong;
  }
  return wrong;
}

struct CaseOutcome {
  std::string wrong;
  std::vector<std::uint8_t> out;
};

// Where the buffers of a case come from: null is ordinary memory.
using Allocate = std::function<std::uint8_t*(std::size_t)>;

inline CaseOutcome run_case(Domain& domain, const SpinPolicy& policy, const DomainCase& test,
                            Deadline deadline) {
  const int rank = domain.index(), ranks = domain.size();
  const Operation operation = operation_of(test, rank);
  const Shape& shape = operation.shape;
  const std::size_t unit = size_of(shape.type);
  const std::size_t in_bytes = operation.in_bytes(rank), out_bytes = operation.out_bytes(rank);
  const auto seed = static_cast<unsigned>(test.number * 31 + rank);
  TestBuffer out(out_bytes, unit, test.pieces, seed), in(in_bytes, unit, test.pieces, seed + 7);
  const auto input = input_of(test, rank, in_bytes);
  Buffers buffers{in.view(), out.mut()};
  in.put(input);
  if (test.in_place) {
    std::size_t at = 0;
    if (shape.kind == Kind::allgather)
      for (int k = 0; k < rank; ++k) at += shape.parts[static_cast<std::size_t>(k)] * unit;
    out.put(input, at);
    buffers.in = out.view({at, at + in_bytes});
  }
  if (const auto why = invalid(operation, buffers, rank, ranks))
    return {test.text() + ": " + *why, {}};

  domain.start(operation, buffers);
  const auto driven = drive(domain, policy, deadline);
  if (!driven) return {test.text() + ": " + driven.error().text, {}};
  CaseOutcome outcome;
  outcome.out = out.get();
  outcome.wrong = wrong_in(test, rank, ranks, outcome.out);
  if (outcome.wrong.empty() && !test.in_place && in.get() != input)
    outcome.wrong = test.text() + ": the input was changed";
  return outcome;
}

// Every kind with several types and reductions at sizes around all limits.  The same list on all
// ranks.
inline std::vector<DomainCase> domain_cases(int ranks, std::size_t slot_bytes,
                                            std::size_t whole_bytes, unsigned seed) {
  std::vector<DomainCase> out;
  std::minstd_rand random(seed);
  const auto add = [&](DomainCase test) {
    test.number = static_cast<int>(out.size());
    out.push_back(std::move(test));
  };
  const auto shape_of = [](Kind kind, DataType type, Reduction reduction, std::uint64_t count) {
    Shape shape;
    shape.kind = kind;
    shape.type = type;
    shape.reduction = reduction;
    shape.count = count;
    return shape;
  };
  const auto parts_of = [&](std::uint64_t count) {
    std::vector<std::uint64_t> parts(static_cast<std::size_t>(ranks), 0);
    switch (random() % 3) {
      case 0:  // even
        for (std::size_t k = 0; k < parts.size(); ++k)
          parts[k] = count / parts.size() + (k < count % parts.size());
        break;
      case 1:  // all in one
        parts[random() % parts.size()] = count;
        break;
      default:  // anyhow
        for (std::uint64_t left = count; left > 0;) {
          const std::uint64_t n = std::min<std::uint64_t>(left, 1 + random() % (count / 2 + 1));
          parts[random() % parts.size()] += n;
          left -= n;
        }
    }
    return parts;
  };

  const DataType types[] = {DataType::f32, DataType::bf16, DataType::i32,     DataType::u8,
                            DataType::f64, DataType::f16,  DataType::boolean, DataType::i64};
  for (const DataType type : types) {
    const std::size_t unit = size_of(type);
    const std::uint64_t slot = slot_bytes / unit, whole = whole_bytes / unit;
    const std::uint64_t sizes[] = {0,         1,        3,    28,       29,       whole,
                                   whole + 1, slot - 1, slot, slot + 1, 2 * slot, 5 * slot + 3};
    for (const std::uint64_t count : sizes) {
      DomainCase test;
      test.in_place = random() % 2 == 0;
      test.pieces = random() % 3 == 0;
      std::vector<Reduction> reductions = {Reduction::sum, Reduction::max};
      if (type == DataType::f32) reductions = {Reduction::sum, Reduction::product, Reduction::min};
      if (type != DataType::boolean && type != DataType::u8)
        reductions.push_back(Reduction::average);
      if (type == DataType::i32 || type == DataType::u8)
        reductions.insert(reductions.end(), {Reduction::bit_and, Reduction::bit_or});
      const Reduction reduction = reductions[random() % reductions.size()];
      test.operation.shape = shape_of(Kind::allreduce, type, reduction, count);
      if (type == DataType::f32 || type == DataType::f64 || type == DataType::i32) {
        if (random() % 3 == 0) test.operation.shape.prescale = 2;
        if (random() % 3 == 0) test.operation.shape.postscale = 0.5;
      }
      add(test);

      DomainCase scatter = test;
      scatter.operation.shape.kind = Kind::reducescatter;
      scatter.operation.shape.parts = parts_of(count);
      scatter.in_place = false;
      add(scatter);

      DomainCase gather;
      gather.in_place = random() % 2 == 0;
      gather.pieces = random() % 3 == 0;
      gather.operation.shape = shape_of(Kind::allgather, type, Reduction::sum, count);
      gather.operation.shape.parts = parts_of(count);
      add(gather);

      DomainCase broadcast;
      broadcast.in_place = random() % 2 == 0;
      broadcast.pieces = random() % 3 == 0;
      broadcast.operation.shape = shape_of(Kind::broadcast, type, Reduction::sum, count);
      broadcast.operation.shape.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
      add(broadcast);

      DomainCase swap;
      swap.pieces = random() % 3 == 0;
      swap.operation.shape = shape_of(Kind::alltoall, type, Reduction::sum, 0);
      for (int r = 0; r < ranks; ++r) swap.all_sends.push_back(parts_of(count));
      add(swap);

      if (random() % 4 == 0) {
        DomainCase barrier;
        barrier.operation.shape.kind = Kind::barrier;
        add(barrier);
      }
    }
  }
  return out;
}

}  // namespace corro::runtime
