#include "rendezvous/messages.h"

#include <fmt/format.h>

namespace corro::rendezvous {

std::string Departure::text() const {
  return fmt::format("rank {} on host {} {}", rank, host, cause);
}

std::optional<Error> store::unfit(std::string_view key, ByteView value) {
  if (key.empty() || key.size() > kKeyLimit)
    return Error(Errc::too_large, fmt::format("a key has 1 to {} bytes", kKeyLimit));
  if (value.size() > kValueLimit)
    return Error(Errc::too_large,
                 fmt::format("key {}: a value has at most {} bytes", key, kValueLimit));
  return std::nullopt;
}

}  // namespace corro::rendezvous
