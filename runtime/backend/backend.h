#pragma once

#include <optional>
#include <vector>

#include "base/socket.h"
#include "base/time.h"
#include "rendezvous/messages.h"
#include "runtime/domain/waiting.h"
#include "runtime/op/failure.h"
#include "runtime/op/op.h"

namespace corro::runtime {

// The ranks of a group carry their operations out by one of these.  Every member starts the same
// operations in the same order; one is under way at a time.
//
// It never waits: whoever drives it calls advance() when something may have changed and sleeps in
// between, as wake() and interests say.  Belongs to one thread at a time.
class Group {
 public:
  enum class State { idle, working, failed };

  virtual ~Group() = default;

  virtual int size() const = 0;
  virtual int self() const = 0;  // this rank's index

  // The buffers are the caller's, and the group's to use until it is idle again or has failed.
  virtual void start(const Operation&, const Buffers&, TimePoint now, Duration timeout) = 0;

  // Whether something moved: then more may.  A failed group stays failed.
  virtual bool advance(TimePoint now) = 0;
  virtual State state() const = 0;
  virtual const std::optional<Failure>& failure() const = 0;

  // What the store says of other ranks, and its own end.
  virtual void hear(const rendezvous::Departure&) = 0;
  virtual void hear(const Error&) = 0;

  // Ends what is under way, and tells the other members.
  virtual void fail(const Failure&, TimePoint now) = 0;

  // How to wait.  While it is worth to spin, progress may come within a microsecond and no
  // descriptor becomes ready.  Between sleep_begins() and sleep_ends() one does; the caller calls
  // advance() in between until it does not move, before it waits.
  virtual SpinPolicy spin() const = 0;
  virtual void sleep_begins() = 0;
  virtual void sleep_ends() = 0;
  virtual TimePoint wake(TimePoint now) const = 0;
  virtual void add_interests(std::vector<Interest>&) const = 0;
};

}  // namespace corro::runtime
