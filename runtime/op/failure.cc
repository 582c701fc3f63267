#include "runtime/op/failure.h"

#include <fmt/format.h>

namespace corro::runtime {

std::string Peer::text() const {
  return fmt::format("rank {} on host {}", rank, host);
}

Failure mismatch(const Peer& a, std::string_view a_does, const Peer& b, std::string_view b_does) {
  if (b.rank < a.rank) return mismatch(b, b_does, a, a_does);
  return Failure(Errc::invalid_input, -1,
                 fmt::format("the ranks do not call the same: {} is {}, {} is {}", a.text(), a_does,
                             b.text(), b_does));
}

}  // namespace corro::runtime
