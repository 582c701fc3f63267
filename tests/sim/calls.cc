#include "tests/sim/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

}  // namespace

Call Call::random(test::Chance& chance, int size) {
  Call call;
  call.size_ = size;
  call.salt_ = chance.next();
  call.whole_numbers_ = !chance.one_in(3);
  Operation& op = call.operation_;
  op.collective = chance.one_in(3) ? Collective::broadcast : Collective::allreduce;
  op.type = chance.one_in(2) ? DataType::f32 : DataType::f64;
  if (op.collective == Collective::allreduce)
    op.reduction = static_cast<Reduction>(chance.below(4));
  if (op.collective == Collective::broadcast)
    op.root = static_cast<std::int32_t>(chance.below(static_cast<std::size_t>(size)));
  op.count = chance.below(chance.one_in(4) ? 3 : 4 * static_cast<std::size_t>(size) + 2);
  return call;
}

double Call::element(int rank, std::size_t i) const {
  test::Chance chance(salt_ + static_cast<std::uint64_t>(rank) * 1'000'003 + i);
  const auto whole = static_cast<double>(chance.below(2001)) - 1000;
  return whole_numbers_ ? whole : whole / 3;
}

Bytes Call::brought(int rank) const {
  Bytes data;
  for (std::size_t i = 0; i < operation_.count; ++i)
    append_element(operation_.type, element(rank, i), data);
  return data;
}

// The plainest way to the result.  An average is divided in the type of the elements, as on the
// wire.
double Call::wanted(std::size_t i) const {
  if (operation_.collective == Collective::broadcast) return element(operation_.root, i);
  double value = element(0, i);
  for (int rank = 1; rank < size_; ++rank)
    value = combined(operation_.reduction, value, element(rank, i));
  if (operation_.reduction != Reduction::average) return value;
  return operation_.type == DataType::f32
             ? static_cast<double>(static_cast<float>(value) / static_cast<float>(size_))
             : value / size_;
}

std::optional<std::string> Call::wrong(int rank, const Bytes& got) {
  if (!first_) first_ = got;
  if (got != *first_)
    return fmt::format("rank {}: {} has other bits than elsewhere", rank, operation_.text());
  const double slack = whole_numbers_ ? 0 : 0.1;
  for (std::size_t i = 0; i < operation_.count; ++i)
    if (const double value = element_at(operation_.type, got, i);
        !(std::abs(value - wanted(i)) <= slack))
      return fmt::format("rank {}: {}: element {} is {}, not {}", rank, operation_.text(), i, value,
                         wanted(i));
  return std::nullopt;
}

}  // namespace corro::runtime
