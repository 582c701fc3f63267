#pragma once

#include <string>
#include <vector>

#include "tests/unit/runtime/pattern/interpreter.h"

// Whole operations in the interpreter, with the result that each must have.
namespace corro::runtime::test {

struct Play {
  bool in_place = false;
  Sending sending = Sending::buffered;
  std::uint32_t seed = 0;
};

// Each returns how it went; a wrong result is a failure too.
Outcome play_allreduce(int ranks, std::size_t count, const Interpreter::Make&, Play);
Outcome play_reducescatter(const std::vector<std::uint64_t>& parts, const Interpreter::Make&, Play);
Outcome play_allgather(const std::vector<std::uint64_t>& parts, const Interpreter::Make&, Play);
Outcome play_broadcast(int ranks, int root, std::size_t count, const Interpreter::Make&, Play);
Outcome play_barrier(int ranks, const Interpreter::Make&, Play);

// splits[a][b]: elements from a to b.
using Splits = std::vector<std::vector<std::uint64_t>>;
std::vector<std::uint64_t> received_by(const Splits&, int rank);
Outcome play_alltoall(const Splits&, const Interpreter::Make&, Play);

// Whether a mismatch cannot be silent: of these ranks, which alone begin the operation, one sends
// to another.  `in` and `out` have `size` elements each.
bool tells_others(int ranks, std::size_t size, const Interpreter::Make&, RankSet begun);

}  // namespace corro::runtime::test
