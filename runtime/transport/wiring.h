#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/crypto.h"
#include "base/time.h"
#include "rendezvous/store_client.h"
#include "runtime/transport/endpoint.h"

namespace corro::runtime {

// A rank among the others of its generation, and how they can reach it.
struct Seat {
  Peer self;
  int size = 1;
  std::uint64_t generation = 0;
  Key key;
  std::string ip;   // on which to listen for peers
  PortRange ports;  // the same
};

// Connects a rank with its neighbours, which do the same: each says in the store where it
// listens, and of two neighbours the lower rank dials.  A pair has one connection, whatever
// schedules use it.
//
// Whoever else connects is turned away, or ignored if it says nothing; neither ends the wait nor
// delays it.  A worker that dies in the meantime is the failure that every rank reports.
Outcome<Links> wire(const Seat&, std::span<const int> neighbours, rendezvous::StoreClient&,
                    Deadline);

}  // namespace corro::runtime
