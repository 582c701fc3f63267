#pragma once

#include <span>
#include <string>
#include <vector>

#include "launcher/network/door.h"

namespace kolo {

// The addresses by which others might reach this machine, with no port yet: of interfaces that are
// up, without loopback and what is good on one link only.
std::vector<Door> own_addresses();

// Pure.  Those of the named interfaces and with that address; of all if none is named.
std::vector<Door> narrowed(std::vector<Door>, std::span<const std::string> interfaces,
                           const std::string& address = "");

}  // namespace kolo
