#pragma once

#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/time.h"

namespace corro::launcher {

// The addresses of a name, in the order in which to try them.  `family`: "inet", "inet6", or
// anything else for both.  `timed_out`: nobody could be asked; another time, maybe.
Result<std::vector<Address>> resolve(const std::string& name, int port, const std::string& family,
                                     Deadline);

struct Dialled {
  Fd socket;  // does not block
  Address address;
};

// The first that answers.  The next is tried when one has failed, or has said nothing for a moment.
// The connection is then watched: a link that is cut is noticed after `silence`.
Result<Dialled> dial(const std::vector<Address>&, Duration silence, Deadline);

}  // namespace corro::launcher
