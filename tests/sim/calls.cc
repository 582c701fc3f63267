#include "tests/sim/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/codec.h"

namespace corro::runtime {

namespace {

double combined(Reduction reduction, double a, double b) {
  switch (reduction) {
    case Reduction::min:
      return std::min(a, b);
    case Reduction::max:
      return std::max(a, b);
    default:
      return a + b;
  }
}

void append_element(DataType type, double value, Bytes& to) {
  type == DataType::f32 ? store_little(to, static_cast<float>(value)) : store_little(to, value);
}

double element_at(DataType type, const Bytes& data, std::size_t i) {
  const auto* at = data.data() + i * size_of(type);
  return type == DataType::f32 ? static_cast<double>(load_little<float>(at))
                               : load_little<double>(at);
}

bool has_parts(Kind kind) {
  return kind == Kind::allgather || kind == Kind::reducescatter;
}

bool reduces(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reducescatter;
}

}  // namespace

Call Call::random(test::Chance& chance, int size) {
  Call call;
  call.size_ = size;
  call.salt_ = chance.next();
  call.whole_numbers_ = !chance.one_in(3);
  call.in_place_ = chance.one_in(2);
  Shape& shape = call.shape_;
  shape.kind = static_cast<Kind>(chance.below(5));
  if (chance.one_in(3)) shape.kind = Kind::allreduce;
  shape.type = chance.one_in(2) ? DataType::f32 : DataType::f64;
  if (reduces(shape.kind)) shape.reduction = static_cast<Reduction>(chance.below(4));
  if (shape.kind == Kind::broadcast)
    shape.root = static_cast<std::int32_t>(chance.below(static_cast<std::size_t>(size)));
  const auto most = chance.one_in(4) ? 3 : 4 * static_cast<std::size_t>(size) + 2;
  if (has_parts(shape.kind)) {
    for (int rank = 0; rank < size; ++rank) shape.parts.push_back(chance.below(9));
    shape.count = std::accumulate(shape.parts.begin(), shape.parts.end(), std::uint64_t{0});
  } else if (shape.kind != Kind::alltoall) {
    shape.count = chance.below(most);
  }
  return call;
}

std::uint64_t Call::split(int from, int to) const {
  return test::Chance(salt_ ^ static_cast<std::uint64_t>(from * 1000 + to)).below(5);
}

Operation Call::operation(int rank) const {
  Operation op;
  op.shape = shape_;
  if (shape_.kind != Kind::alltoall) return op;
  for (int other = 0; other < size_; ++other) {
    op.sends.push_back(split(rank, other));
    op.receives.push_back(split(other, rank));
  }
  return op;
}

std::size_t Call::begin_of(int rank) const {
  return std::accumulate(shape_.parts.begin(), shape_.parts.begin() + rank, std::uint64_t{0});
}

double Call::element(int rank, std::size_t i) const {
  test::Chance chance(salt_ + static_cast<std::uint64_t>(rank) * 1'000'003 + i);
  const auto whole = static_cast<double>(chance.below(2001)) - 1000;
  return whole_numbers_ ? whole : whole / 3;
}

Bytes Call::brought(int rank) const {
  Bytes data;
  const std::size_t count = operation(rank).in_bytes(rank) / size_of(shape_.type);
  for (std::size_t i = 0; i < count; ++i) append_element(shape_.type, element(rank, i), data);
  return data;
}

// The plainest way to the result.  An average is divided in the type of the elements, as on the
// wire.
double Call::reduced(std::size_t i) const {
  double value = element(0, i);
  for (int rank = 1; rank < size_; ++rank)
    value = combined(shape_.reduction, value, element(rank, i));
  if (shape_.reduction != Reduction::average) return value;
  return shape_.type == DataType::f32
             ? static_cast<double>(static_cast<float>(value) / static_cast<float>(size_))
             : value / size_;
}

double Call::wanted(int rank, std::size_t i) const {
  switch (shape_.kind) {
    case Kind::broadcast:
      return element(shape_.root, i);
    case Kind::allgather: {
      int from = 0;
      while (i >= begin_of(from) + shape_.parts[static_cast<std::size_t>(from)]) ++from;
      return element(from, i - begin_of(from));
    }
    case Kind::alltoall: {
      int from = 0;
      for (; i >= split(from, rank); ++from) i -= split(from, rank);
      for (int to = 0; to < rank; ++to) i += split(from, to);
      return element(from, i);
    }
    case Kind::reducescatter:
      return reduced(begin_of(rank) + i);
    default:
      return reduced(i);
  }
}

std::optional<std::string> Call::wrong(int rank, const Bytes& got) {
  const bool same_for_all = shape_.kind != Kind::reducescatter && shape_.kind != Kind::alltoall;
  if (!first_) first_ = got;
  if (same_for_all && got != *first_)
    return fmt::format("rank {}: {} has other bits than elsewhere", rank, text());
  const double slack = whole_numbers_ ? 0 : 0.1;
  for (std::size_t i = 0; i < got.size() / size_of(shape_.type); ++i)
    if (const double value = element_at(shape_.type, got, i);
        !(std::abs(value - wanted(rank, i)) <= slack))
      return fmt::format("rank {}: {}: element {} is {}, not {}", rank, text(), i, value,
                         wanted(rank, i));
  return std::nullopt;
}

}  // namespace corro::runtime
