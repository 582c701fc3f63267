#include "rendezvous/messages.h"

#include <fmt/format.h>

namespace kolo {

std::string Departure::text() const {
  return fmt::format("rank {} on host {} {}", rank, host, cause);
}

}  // namespace kolo
