#pragma once

#include <cstdint>
#include <string>

#include "runtime/op/failure.h"

namespace corro::runtime {

// One operation under way on one rank.  It moves as far as the other ranks allow and never waits.
class Running {
 public:
  virtual ~Running() = default;

  // Whether it is finished.
  virtual Outcome<bool> advance() = 0;

  // While it is not finished: the index in the group of a member that it waits for, and a few
  // words on how far it has come (" in step 2 of 6"), for messages.
  virtual int awaited() const = 0;

  // Whether it waits for that member in shared memory: no connection breaks when the member exits.
  virtual bool waits_in_memory() const { return false; }

  virtual std::string where() const = 0;
  virtual std::string description() const = 0;

  // The operation has failed on this rank: tells the members that no link leads to.
  virtual void abort(const Failure&) {}

  // What every message of this operation has in common, whichever rank sends it.
  struct Identity {
    std::uint64_t sequence = 0, digest = 0;
  };
  virtual Identity identity() const = 0;
};

}  // namespace corro::runtime
