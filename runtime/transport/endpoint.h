#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/socket.h"
#include "runtime/op/failure.h"
#include "runtime/op/pieces.h"
#include "runtime/transport/message.h"

namespace corro::runtime {

// The bytes of a message: a range of a buffer that may lie in pieces.  The buffer outlives the
// message.
struct Body {
  const Pieces* pieces = nullptr;
  Range bytes;

  std::size_t size() const { return bytes.size(); }
};

// A two-way path to one peer.  It carries one message each way at a time and never waits: its
// owner calls progress() when something may have changed, and waits on interest() in between.
//
// Whenever it is not in the middle of a message it listens: a peer that gives up says why, at
// any time, and that comes out of progress() as the failure that the peer named.  A peer whose
// connection ended without a word is a `closed` failure, but only for an owner that still expects
// something from it: the peer may have done its part and exited.  Once failed, it stays failed.
//
// Belongs to one thread at a time.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual const Peer& peer() const = 0;

  // The body stays unchanged until sent().  A description goes out before the body; it is for the
  // first message of an operation on this link.
  virtual void send(const Header&, std::string_view description, Body) = 0;
  virtual bool sent() const = 0;

  // What the peer must send next; anything else is a failure that names both sides.  The
  // description outlives the wait.
  virtual void expect(const Expected&) = 0;
  virtual bool received() const = 0;

  // A message that arrived before it was expected.
  struct Early {
    const Header& header;
    std::string_view description;
  };
  virtual std::optional<Early> early() const = 0;

  // Sends and listens, a piece at a time.  Whether anything moved: then more may.
  virtual Outcome<bool> progress() = 0;

  // The next bytes of the expected body, as far as they have arrived.  How many.
  virtual Outcome<std::size_t> take(MutByteView into) = 0;

  // The last message: after the one under way, or at once.  Dropped if the peer's connection has
  // ended or the peer has sent an abort itself; sent() when there is no more to do.
  virtual void abort(const Failure&) = 0;

  // Why the peer gave up, if it has said so behind whatever else it sent.  All of that is lost:
  // this is for an owner that has failed already and looks for the cause.
  virtual std::optional<Failure> last_words() = 0;

  // What to wait for; nothing is fd -1.
  virtual Interest interest() const = 0;
};

inline constexpr auto kLinkLook = std::chrono::milliseconds(50);

// The links of one group: made when they are first needed.
//
// Belongs to one thread at a time.
class Links {
 public:
  virtual ~Links() = default;

  // Null while the link is being made.  A failure names the peer that cannot be reached.
  virtual Outcome<Endpoint*> link(int index) = 0;

  // Those that are there.
  virtual std::vector<Endpoint*> open() const = 0;

  // Whether a link that was asked for is not there yet: then the owner asks again within
  // kLinkLook even if no descriptor became ready, since dialling again is a matter of time.
  virtual bool making() const = 0;
  virtual void add_interests(std::vector<Interest>&) const = 0;

  virtual void close() = 0;
};

// Links that were all made beforehand.
class ReadyLinks final : public Links {
 public:
  void add(int index, std::unique_ptr<Endpoint> link) { links_[index] = std::move(link); }

  Outcome<Endpoint*> link(int index) override { return links_.at(index).get(); }
  std::vector<Endpoint*> open() const override {
    std::vector<Endpoint*> all;
    for (const auto& [index, link] : links_) all.push_back(link.get());
    return all;
  }
  bool making() const override { return false; }
  void add_interests(std::vector<Interest>&) const override {}
  void close() override { links_.clear(); }

 private:
  std::map<int, std::unique_ptr<Endpoint>> links_;
};

}  // namespace corro::runtime
