#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/codec.h"

namespace corro::launcher {

// An address of a host where somebody listens, to find out who can reach it.
struct Door {
  std::string interface;
  std::string ip;
  std::uint16_t port = 0;
  std::uint32_t mbits = 0;  // of the interface; 0: it does not say
  CORRO_FIELDS(interface, ip, port, mbits)
  bool operator==(const Door&) const = default;
};

// All doors of a host, for another one to knock at.
struct Doorway {
  std::string host;
  std::vector<Door> doors;
  CORRO_FIELDS(host, doors)
  bool operator==(const Doorway&) const = default;
};

// Which of them opened, by their place in the doorway, and why not if none did.
struct Opening {
  std::string host;
  std::vector<std::uint32_t> doors;
  std::string trouble;
  CORRO_FIELDS(host, doors, trouble)
  bool operator==(const Opening&) const = default;
};

}  // namespace corro::launcher
