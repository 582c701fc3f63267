#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/fd.h"
#include "base/result.h"
#include "runtime/op/failure.h"
#include "runtime/op/op.h"

namespace corro::runtime {

// What one rank offers the others of its machine: memory that they map, and a doorbell that they
// ring when it sleeps.  The descriptors travel over an abstract unix socket (domain/exchange.h).
struct Membership {
  Peer peer;             // rank in the job, and host, for messages
  Fd memory;             // a sealed memfd: a segment (domain/layout.h) or an arena
  Fd doorbell;           // an eventfd; none for an arena
  std::int64_t pid = 0;  // as this process sees it; 0: not known, so no cross-memory attach
};

// The members of one group that share a machine: they reduce, copy and signal in memory that all
// of them map.  One operation at a time, in the same order on all members.
//
// It moves as far as the others' progress allows and never waits; the caller that drives it
// decides how long to spin and when to sleep (domain/waiting.h does both).  Ranks in operations
// are indexes in the domain.
//
// Belongs to one thread at a time.
class Domain {
 public:
  struct Progress {
    bool moved = false, done = false;
  };

  virtual ~Domain() = default;

  virtual int index() const = 0;
  virtual int size() const = 0;

  // Both are borrowed until the operation is done or failed: nothing is copied, so that a start
  // allocates nothing.  The operation must be valid (op.h), and every piece of a buffer must hold
  // whole elements.
  //
  // `asked`, if it is not null, is what the caller was asked to do, of which the operation is a
  // part: members compare it too, and a mismatch is described by it.  Borrowed for the call.
  virtual void start(const Operation&, const Buffers&, const Shape* asked = nullptr) = 0;

  // This member has given up: the others fail in the same words.
  virtual void abort(const Failure&) = 0;

  // A failure is a mismatch: another member is in another operation.  It names both.  All members
  // fail, and the domain is of no more use: every later operation fails with the same words.
  virtual Outcome<Progress> advance() = 0;

  // The first member that has not come as far as this one needs; for time-outs.
  virtual const Peer& awaited() const = 0;

  // Between these two the others ring the doorbell when they make progress.  After sleep_begins()
  // the caller calls advance() until it does not move, before it waits for the descriptor to
  // become readable.
  virtual void sleep_begins() = 0;
  virtual void sleep_ends() = 0;
  virtual int doorbell() const = 0;
};

}  // namespace corro::runtime
