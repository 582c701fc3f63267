#include "runtime/backend/native/stages.h"

#include <algorithm>
#include <numeric>

#include "base/assert.h"
#include "runtime/pattern/schedule.h"

namespace corro::runtime {

namespace {

using Where = Stage::Where;

std::vector<int> everyone(const Topology& topology) {
  std::vector<int> members(static_cast<std::size_t>(topology.size()));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

Operation barrier() {
  return {};
}

Pieces readable(const MutPieces& pieces) {
  return Pieces(std::vector<Pieces::Piece>(pieces.pieces().begin(), pieces.pieces().end()));
}

// The elements of each local member: lane k for local index k, nothing beyond the lanes.
std::vector<std::uint64_t> lane_parts(const Topology& topology, std::size_t count) {
  std::vector<std::uint64_t> parts(topology.local().size());
  for (int k = 0; k < topology.lanes(); ++k)
    parts[static_cast<std::size_t>(k)] = part_of(count, topology.lanes(), k).size();
  return parts;
}

std::vector<Stage> allreduce(const Operation& op, const Buffers& buffers,
                             const Topology& topology) {
  const int lane = topology.local_index(), lanes = topology.lanes();
  const std::size_t element = size_of(op.shape.type), count = op.shape.count;
  const Range mine = lane < lanes ? part_of(count, lanes, lane).scaled(element)
                                  : Range{count * element, count * element};
  const MutPieces part = buffers.out.slice(mine);

  // The average is taken, and the result scaled, once: across.
  Operation inside = op;
  inside.shape.kind = Kind::reducescatter;
  if (op.shape.reduction == Reduction::average) inside.shape.reduction = Reduction::sum;
  inside.shape.postscale = 1;
  inside.shape.parts = lane_parts(topology, count);
  Operation across = op;
  across.shape.count = mine.size() / element;
  Operation spread = inside;
  spread.shape.kind = Kind::allgather;

  if (topology.local().size() == 1)
    return {{Where::messages, topology.lane(0), across, buffers, topology.size()}};
  std::vector<Stage> stages;
  stages.push_back({Where::domain, topology.local(), inside, {buffers.in, part}, 0});
  if (lane < lanes)
    stages.push_back(
        {Where::messages, topology.lane(lane), across, {readable(part), part}, topology.size()});
  stages.push_back({Where::domain, topology.local(), spread, {readable(part), buffers.out}, 0});
  return stages;
}

// One member of each machine, on the root's own machine the root; each has its machine's tensor
// first.
std::vector<Stage> broadcast(const Operation& op, const Buffers& buffers,
                             const Topology& topology) {
  std::vector<int> leaders;
  for (const auto& machine : topology.machines) {
    const bool has_root = std::binary_search(machine.begin(), machine.end(), op.shape.root);
    leaders.push_back(has_root ? op.shape.root : machine.front());
  }
  const int leader = leaders[static_cast<std::size_t>(topology.machine_of(topology.self))];
  const auto index_in = [](const std::vector<int>& members, int member) {
    return static_cast<int>(std::find(members.begin(), members.end(), member) - members.begin());
  };
  std::vector<Stage> stages;
  const bool shares = topology.local().size() > 1;
  // First of all every member of the machine has come with the same operation.
  if (shares) stages.push_back({Where::domain, topology.local(), barrier(), {}, 0});
  if (topology.self == leader) {
    Operation across = op;
    across.shape.root = index_in(leaders, op.shape.root);
    stages.push_back({Where::messages, leaders, across, buffers, 0});
  }
  if (!shares) return stages;
  Operation inside = op;
  inside.shape.root = index_in(topology.local(), leader);
  const Pieces in = topology.self == leader ? readable(buffers.out) : Pieces();
  stages.push_back({Where::domain, topology.local(), inside, {in, buffers.out}, 0});
  return stages;
}

std::vector<Stage> two_level_barrier(const Topology& topology) {
  std::vector<Stage> stages;
  const Stage inside{Where::domain, topology.local(), barrier(), {}, 0};
  const bool shares = topology.local().size() > 1;
  if (shares) stages.push_back(inside);
  if (topology.local_index() == 0)
    stages.push_back({Where::messages, topology.lane(0), barrier(), {}, 0});
  if (shares) stages.push_back(inside);
  return stages;
}

}  // namespace

std::vector<Stage> stages_of(const Operation& op, const Buffers& buffers,
                             const Topology& topology) {
  if (topology.one_machine() && topology.size() > 1)
    return {{Where::domain, everyone(topology), op, buffers, topology.size()}};
  if (!topology.all_apart()) {
    if (op.shape.kind == Kind::allreduce) return allreduce(op, buffers, topology);
    if (op.shape.kind == Kind::broadcast) return broadcast(op, buffers, topology);
    if (op.shape.kind == Kind::barrier) return two_level_barrier(topology);
  }
  return {{Where::messages, everyone(topology), op, buffers, topology.size()}};
}

}  // namespace corro::runtime
