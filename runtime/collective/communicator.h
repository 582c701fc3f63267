#pragma once

#include <optional>

#include "base/status_page.h"
#include "base/time.h"
#include "rendezvous/store_client.h"
#include "runtime/collective/member.h"

namespace corro::runtime {

// A member on real sockets: it waits where the member would only move.  While an operation is
// under way the thread that called it watches links and store together, so news of a death ends
// it at once.
//
// Belongs to one thread at a time.  Closing it says nothing to anybody.
class Communicator {
 public:
  // Alone.
  explicit Communicator(Peer self);
  Communicator(const Peer& self, int size, std::uint64_t generation, Links,
               rendezvous::StoreClient);

  // Whoever holds the page learns what is called, and when it ends.
  void tell(StatusWriter status) { status_ = std::move(status); }

  Outcome<Unit> run(const Operation&, MutByteView data, Duration timeout);

 private:
  Outcome<Unit> run_untold(const Operation&, MutByteView data, Duration timeout);
  void wait();
  void read_news();

  Member member_;
  std::optional<rendezvous::StoreClient> store_;  // while it is there
  StatusWriter status_;
  std::uint64_t calls_ = 0;
};

}  // namespace corro::runtime
