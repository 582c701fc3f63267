#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace corro {

// A numeric address; names are resolved before they get here.  Printed "127.0.0.1:80", "[::1]:80".
struct Address {
  std::string ip;
  std::uint16_t port = 0;

  std::string text() const;
  static Result<Address> parse(std::string_view);
  bool operator==(const Address&) const = default;
};

// Where to listen; without a first one any port will do.
struct PortRange {
  std::uint16_t first = 0, last = 0;

  std::string text() const;  // "20000-20100"
  static Result<PortRange> parse(std::string_view);
  bool operator==(const PortRange&) const = default;
};

// Whether it is a numeric address, of version 4 or 6.
bool is_ip(const std::string&);

}  // namespace corro
