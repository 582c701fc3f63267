#pragma once

#include <map>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/socket.h"
#include "runtime/transport/failure.h"
#include "runtime/transport/message.h"

namespace corro::runtime {

// A two-way path to one peer.  It carries one message each way at a time and never waits: its
// owner calls progress() when something may have changed, and waits on interest() in between.
//
// Whenever it is not in the middle of a message it listens: a peer that gives up says why, at
// any time, and that comes out of progress() as the failure that the peer named.  A peer that is
// gone without a word is a `closed` failure, but only for who still wants something of it: it
// may have done its part and left.  Once failed, it stays failed.
//
// Belongs to one thread at a time.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual const Peer& peer() const = 0;

  // The body is the caller's and stays unchanged until sent().
  virtual void send(const Header&, ByteView body) = 0;
  virtual bool sent() const = 0;

  // What the peer must send next; anything else is a failure that names both sides.
  virtual void expect(const Header&) = 0;
  virtual bool received() const = 0;

  // Sends and listens, a piece at a time.  Whether anything moved: then more may.
  virtual Outcome<bool> progress() = 0;

  // The next bytes of the expected body, as far as they have arrived.  How many.
  virtual Outcome<std::size_t> take(MutByteView into) = 0;

  // The last message: after the one under way, or at once.  Dropped if the peer is gone or has
  // said the like itself; sent() when there is no more to do.
  virtual void abort(const Failure&) = 0;

  // Why the peer gave up, if it has said so behind whatever else it sent.  All of that is lost:
  // this is for who has failed already, and wants to know why.
  virtual std::optional<Failure> last_words() = 0;

  // What to wait for; nothing is fd -1.
  virtual Interest interest() const = 0;
};

// One for each neighbour, by rank.
using Links = std::map<int, std::unique_ptr<Endpoint>>;

}  // namespace corro::runtime
