#include "runtime/pattern/folded_world.h"

namespace corro::runtime {

Step FoldedWorld::fold(Slice send, Slice recv, Slice operand, Act act) const {
  if (is_extra()) return {.to = proxy(), .from = proxy(), .send = send};
  if (!is_proxy()) return {};
  return {.to = extra(), .from = extra(), .recv = recv, .operand = operand, .act = act};
}

Step FoldedWorld::unfold(Slice send, Slice recv) const {
  if (is_extra()) return {.from = proxy(), .recv = recv};
  if (!is_proxy()) return {};
  return {.to = extra(), .send = send};
}

}  // namespace corro::runtime
