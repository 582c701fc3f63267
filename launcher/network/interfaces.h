#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/network/door.h"

namespace corro::launcher {

// The addresses by which others might reach this machine, with no port yet: of interfaces that are
// up, without loopback and what is good on one link only.
std::vector<Door> own_addresses();

// By which those who share this machine reach each other.
inline const Door kLoopback{"lo", "127.0.0.1", 0, 0};

// Those by which this machine reaches itself: loopback, and then the same.
std::vector<Door> inner_addresses();

// Pure.  Those of the named interfaces and with that address; of all if none is named.
std::vector<Door> narrowed(std::vector<Door>, std::span<const std::string> interfaces,
                           const std::string& address = "");

// Pure.  Those of the named interfaces that have a door, as they are named.
std::vector<std::string> present(std::span<const std::string> interfaces,
                                 std::span<const Door> doors);

// Pure.  Whether the named interfaces, if any, will do for this machine, which has these.  Other
// hosts may have those that it has not; where there are none it must have all.
Result<Unit> check_interfaces(std::span<const std::string> interfaces, std::span<const Door> here,
                              bool others);

}  // namespace corro::launcher
