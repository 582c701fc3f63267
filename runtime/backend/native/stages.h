#pragma once

#include <vector>

#include "runtime/backend/native/topology.h"
#include "runtime/op/op.h"

namespace corro::runtime {

// One part of an operation: among the members of this machine in shared memory, or by messages
// among some members of the group.
struct Stage {
  enum class Where { domain, messages };

  Where where = Where::messages;
  std::vector<int> members;  // indexes in the group; ranks in `op` are indexes in this list
  Operation op;
  Buffers buffers;
  int finish_ranks = 0;  // the result is finished here, as of so many ranks; 0: it is not
};

// How one member of a group carries an operation out, stage by stage.  Where members share machines
// an allreduce is reduced inside each machine, exchanged across, lane by lane, and spread inside,
// so that each tensor crosses the network once for each machine and not for each rank.
//
// Each stage that a member takes part in ends only when all of the stage's members have begun it,
// and in every list of stages each member depends on every other; so no rank succeeds while
// another is in a different operation.
std::vector<Stage> stages_of(const Operation&, const Buffers&, const Topology&);

}  // namespace corro::runtime
