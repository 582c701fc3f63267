#include "runtime/transport/message.h"

#include <fmt/format.h>

#include <array>

namespace corro::runtime {

namespace {

constexpr std::array kTypes = {"f32", "f64"};
constexpr std::array kReductions = {"sum", "average", "min", "max"};

template <std::size_t N, class Enum>
const char* name_in(const std::array<const char*, N>& names, Enum value) {
  static_assert(N == static_cast<std::size_t>(last_of(Enum{})) + 1);
  return names[static_cast<std::size_t>(value)];
}

}  // namespace

std::string Operation::text() const {
  switch (collective) {
    case Collective::allreduce:
      return fmt::format("allreduce({} of {} {})", name_in(kReductions, reduction), count,
                         name_in(kTypes, type));
    case Collective::broadcast:
      return fmt::format("broadcast({} {} from rank {})", count, name_in(kTypes, type), root);
    case Collective::barrier:
      break;
  }
  return "barrier()";
}

std::string Peer::text() const {
  return fmt::format("rank {} on host {}", rank, host);
}

std::optional<std::string> mismatch(const Header& wanted, const Peer& mine, const Header& came,
                                    const Peer& peer) {
  if (came == wanted) return std::nullopt;
  if (came.generation != wanted.generation)
    return fmt::format("{} is in generation {} of the job, {} in generation {}", peer.text(),
                       came.generation, mine.text(), wanted.generation);
  if (came.operation != wanted.operation || came.sequence != wanted.sequence)
    return fmt::format(
        "the ranks do not call the same: operation {} of {} is {}, operation {} of {} is {}",
        came.sequence, peer.text(), came.operation.text(), wanted.sequence, mine.text(),
        wanted.operation.text());
  return fmt::format("{} sent {} bytes for step {} where {} bytes for step {} were due",
                     peer.text(), came.bytes, came.step, wanted.bytes, wanted.step);
}

}  // namespace corro::runtime
