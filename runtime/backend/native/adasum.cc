#include "runtime/backend/native/adasum.h"

#include "runtime/op/kernels.h"

namespace corro::runtime {

namespace {

void combine_pair(DataType type, MutByteView a, ByteView b) {
  const double dot_ab = dot(type, a, b), aa = dot(type, a, a), bb = dot(type, b, b);
  const double of_a = aa > 0 ? 1 - dot_ab / (2 * aa) : 1;
  const double of_b = bb > 0 ? 1 - dot_ab / (2 * bb) : 1;
  combine(type, a, of_a, a, of_b, b);
}

}  // namespace

void adasum(DataType type, MutByteView inputs, int ranks, const MutPieces& out) {
  const std::size_t bytes = out.size();
  std::size_t begin = 0;
  for (const auto& piece : out.pieces()) {
    const auto input = [&](int rank) {
      return inputs.subspan(static_cast<std::size_t>(rank) * bytes + begin, piece.size());
    };
    for (int distance = 1; distance < ranks; distance *= 2)
      for (int rank = 0; rank + distance < ranks; rank += 2 * distance)
        combine_pair(type, input(rank), input(rank + distance));
    copy(piece, input(0));
    begin += piece.size();
  }
}

}  // namespace corro::runtime
