#pragma once

#include <optional>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/proof.h"
#include "base/time.h"

namespace corro {

// Sockets are non-blocking and close-on-exec, and TCP ones do not wait to fill a packet.
// Port 0: one that is free, of those in the range.
Result<Fd> listen_on(const Address&, PortRange = {});
Result<Address> local_address(int fd);
Result<Fd> connect_to(const Address&, Deadline);

// The same in two steps, for those who try several at once.
Result<Fd> begin_connecting(const Address&);
std::optional<int> outcome_of_connecting(int fd);  // errno, 0 for connected; none: under way

// The next connection that waits.  None is an empty Fd.
Result<Fd> accept_from(int listener);

struct Interest {
  int fd;
  bool read = false, write = false;
};

// Returns when one of them is ready; `timed_out` at the deadline.
Result<Unit> wait_for_any(const std::vector<Interest>&, Deadline);

Result<Unit> write_all(int fd, ByteView, Deadline);

// The whole proof, in place.  Nothing beyond its last byte is read.
Result<Unit> prove(int fd, Proof, Deadline);

}  // namespace corro
