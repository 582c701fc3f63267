#pragma once

#include <string>

#include "base/bytes.h"
#include "runtime/pattern/schedule.h"
#include "runtime/transport/endpoint.h"

namespace corro::runtime {

// One operation on its way through a schedule.  It moves as far as the links allow now and never
// waits, so it runs the same over sockets and in the simulator.
//
// Elements to be reduced come into a small scratch buffer and are reduced piece by piece while
// the rest is still arriving: the scratch stays in the cache, whatever the size of the tensor.
//
// Made by Member for one operation; what it borrows outlives it.
class Execution {
 public:
  // `header` says which operation this is; every message is stamped with it.
  Execution(const Schedule&, Links&, const Header&, int ranks, MutByteView data, Bytes& scratch);

  // Whether it is finished.
  Outcome<bool> advance();

  int step() const { return at_; }
  int steps() const { return schedule_.steps(); }
  const Peer& awaited() const;  // whom it waits for, while it is not finished

 private:
  void begin();
  Outcome<bool> move();
  Outcome<std::size_t> copy_arrived();
  Outcome<std::size_t> reduce_arrived();
  bool step_is_done() const;
  MutByteView elements(Range) const;
  Header stamp(Range) const;

  const Schedule& schedule_;
  Links& links_;
  Header header_;
  int ranks_;
  MutByteView data_;
  Bytes& scratch_;

  int at_ = 0;  // the step
  bool begun_ = false;
  Step step_;
  Endpoint* to_ = nullptr;    // where this step sends; null for nobody
  Endpoint* from_ = nullptr;  // where it receives from
  MutByteView target_;        // elements of this step that are still to be received
  std::size_t held_ = 0;      // bytes in the scratch that are not a whole element yet
};

// Two pieces, the one that comes in and the one it is added to, fit a core's own cache.
inline constexpr std::size_t kPieceBytes = 128 * 1024;

}  // namespace corro::runtime
