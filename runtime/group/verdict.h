#pragma once

#include <map>
#include <optional>

#include "base/time.h"
#include "rendezvous/messages.h"
#include "runtime/op/failure.h"

namespace corro::runtime {

// Which failure a rank reports, from what the store, its neighbours and its own links say.  Pure:
// told the news and the time.
//
// A broken link is only a symptom: its peer may have died, or have exited, or have given up
// because of a third rank.  A reported death may be a consequence too: the dead rank may have
// exited because another failed first, and will have sent its neighbours the original cause.
class Verdict {
 public:
  // A death ends whatever is under way.  A rank that exited with code 0 is only remembered, since
  // what it sent before may still be arriving.
  void hear(const rendezvous::Departure&);

  // The store itself, or any means of waiting, is lost.
  void hear(const Error&);

  // A link broke in the middle of an operation.
  void suspect(const Failure& symptom, TimePoint now);

  bool any_exit() const { return !exited_.empty(); }

  // That this rank has exited with code 0, if it has.
  std::optional<Failure> exit_of(int rank) const;

  // Whether the store has reported a death, or is lost.
  bool reported() const { return reported_.has_value(); }
  bool suspects() const { return symptom_.has_value(); }

  // The failure to report now, if it is time: a neighbour's own words count most and are not
  // asked for here.
  std::optional<Failure> decide(TimePoint now);

  // When decide() may know more.
  std::optional<TimePoint> wake() const;

 private:
  std::optional<Failure> reported_;    // by the store
  std::optional<TimePoint> believed_;  // from when on, if no neighbour knows better
  std::map<int, Failure> exited_;      // with code 0, should that matter
  std::optional<Failure> symptom_;     // the broken link that is in doubt
  TimePoint doubted_until_;
};

}  // namespace corro::runtime
