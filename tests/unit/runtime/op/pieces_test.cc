#include "runtime/op/pieces.h"

#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>
#include <numeric>

#include "base/bytes.h"

using namespace corro;
using namespace corro::runtime;

namespace {

// A buffer whose bytes count up, and its pieces for cuts of the given sizes, empty ones included.
struct Cut {
  Bytes whole;
  std::vector<std::span<const std::uint8_t>> pieces;

  explicit Cut(const std::vector<std::uint8_t>& sizes) {
    whole.resize(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
    std::iota(whole.begin(), whole.end(), std::uint8_t{0});
    std::size_t at = 0;
    for (const std::size_t size : sizes) {
      pieces.push_back(ByteView(whole).subspan(at, size));
      at += size;
    }
  }
};

}  // namespace

TEST_CASE("no memory is no piece") {
  CHECK(Pieces().size() == 0);
  CHECK(Pieces().contiguous());
  CHECK(Pieces().pieces().empty());
  const Pieces empty(std::vector<Pieces::Piece>(3));
  CHECK(empty.size() == 0);
  CHECK(empty.pieces().empty());
  empty.each({0, 0}, [](Pieces::Piece) { FAIL("nothing to call for"); });
}

TEST_CASE("one piece among empty ones is contiguous") {
  const Cut cut({0, 5, 0});
  const Pieces pieces(cut.pieces);
  CHECK(pieces.contiguous());
  CHECK(pieces.size() == 5);
  REQUIRE(pieces.pieces().size() == 1);
  CHECK(pieces.pieces()[0].data() == cut.whole.data());
}

TEST_CASE("a copy of pieces refers to the same memory") {
  const Cut cut({2, 3});
  Pieces copy;
  {
    const Pieces pieces(cut.pieces);
    copy = pieces;
  }
  CHECK(copy.at(2, 9).data() == cut.whole.data() + 2);
}

TEST_CASE("however a buffer is cut, a range of it has the bytes of the whole") {
  rc::prop("each", [] {
    const Cut cut(*rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange(0, 20)));
    const Pieces pieces(cut.pieces);
    RC_ASSERT(pieces.size() == cut.whole.size());
    const auto end = *rc::gen::inRange<std::size_t>(0, cut.whole.size() + 1);
    const auto begin = *rc::gen::inRange<std::size_t>(0, end + 1);
    Bytes seen;
    pieces.each({begin, end}, [&](Pieces::Piece part) {
      RC_ASSERT(!part.empty());
      append(seen, part);
    });
    RC_ASSERT(seen == Bytes(cut.whole.begin() + static_cast<std::ptrdiff_t>(begin),
                            cut.whole.begin() + static_cast<std::ptrdiff_t>(end)));
  });
}

TEST_CASE("a place is found with as much memory as is contiguous there") {
  rc::prop("at", [] {
    const Cut cut(
        *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange(1, 20))));
    const Pieces pieces(cut.pieces);
    const auto at = *rc::gen::inRange<std::size_t>(0, cut.whole.size());
    const auto most = *rc::gen::inRange<std::size_t>(1, 40);
    const auto found = pieces.at(at, most);
    RC_ASSERT(found.data() == cut.whole.data() + at);
    std::size_t end = 0;
    for (const auto& piece : cut.pieces)
      if ((end += piece.size()) > at) break;
    RC_ASSERT(found.size() == std::min(most, end - at));
  });
}

TEST_CASE("a range knows its size, in elements and in bytes") {
  CHECK(Range{3, 7}.size() == 4);
  CHECK(Range{3, 3}.empty());
  CHECK(Range{3, 7}.scaled(4) == Range{12, 28});
}
