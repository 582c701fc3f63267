#include "runtime/op/op.h"

#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/bytes.h"
#include "runtime/op/failure.h"

using namespace corro;
using namespace corro::runtime;

namespace {

Shape shape_of(Kind kind, DataType type, std::uint64_t count,
               std::vector<std::uint64_t> parts = {}) {
  Shape shape;
  shape.kind = kind;
  shape.type = type;
  shape.count = count;
  shape.parts = std::move(parts);
  return shape;
}

Shape allreduce_of(Reduction reduction, DataType type, std::uint64_t count) {
  Shape shape = shape_of(Kind::allreduce, type, count);
  shape.reduction = reduction;
  return shape;
}

template <class Enum>
rc::Gen<Enum> any_of_enum() {
  return rc::gen::map(rc::gen::inRange(0, static_cast<int>(last_of(Enum{})) + 1),
                      [](int value) { return static_cast<Enum>(value); });
}

Shape any_shape() {
  Shape shape;
  shape.kind = *any_of_enum<Kind>();
  shape.type = *any_of_enum<DataType>();
  shape.reduction = *any_of_enum<Reduction>();
  shape.root = *rc::gen::inRange(0, 1000);
  shape.count = *rc::gen::arbitrary<std::uint64_t>();
  shape.parts = *rc::gen::arbitrary<std::vector<std::uint64_t>>();
  shape.prescale = *rc::gen::arbitrary<double>();
  shape.postscale = *rc::gen::arbitrary<double>();
  return shape;
}

// Group of 4, asked by rank 1, with buffers of just the right size.
std::optional<std::string> refusal(const Operation& op, int ranks = 4) {
  static Bytes memory(1 << 16);
  Buffers buffers;
  buffers.in = Pieces(ByteView(memory).first(std::min<std::size_t>(op.in_bytes(1), 1 << 15)));
  buffers.out = MutPieces(
      MutByteView(memory).subspan(1 << 15).first(std::min<std::size_t>(op.out_bytes(1), 1 << 15)));
  return invalid(op, buffers, 1, ranks);
}

std::optional<std::string> refusal(Shape shape) {
  return refusal(Operation{std::move(shape), {}, {}});
}

}  // namespace

TEST_CASE("an operation is described as its user wrote it") {
  CHECK(allreduce_of(Reduction::sum, DataType::f64, 64).text() == "allreduce(sum of 64 f64)");
  CHECK(shape_of(Kind::broadcast, DataType::f64, 1000).text() == "broadcast(1000 f64 from rank 0)");
  CHECK(Shape{}.text() == "barrier()");
  CHECK(shape_of(Kind::allgather, DataType::f32, 1000).text() == "allgather(1000 f32)");
  CHECK(shape_of(Kind::reducescatter, DataType::f32, 1000).text() ==
        "reducescatter(sum of 1000 f32)");
  CHECK(shape_of(Kind::alltoall, DataType::f32, 0).text() == "alltoall(f32)");
}

TEST_CASE("scales are described only where there are some") {
  Shape shape = allreduce_of(Reduction::sum, DataType::f64, 64);
  shape.prescale = 0.5;
  CHECK(shape.text() == "allreduce(sum of 64 f64, prescale 0.5)");
  shape.postscale = 3;
  CHECK(shape.text() == "allreduce(sum of 64 f64, prescale 0.5, postscale 3)");
}

TEST_CASE("parts are described only where they are uneven") {
  const auto gather = [](std::vector<std::uint64_t> parts) {
    std::uint64_t count = 0;
    for (const auto part : parts) count += part;
    return shape_of(Kind::allgather, DataType::i8, count, std::move(parts)).text();
  };
  CHECK(gather({4, 3, 3}) == "allgather(10 i8)");
  CHECK(gather({3, 4, 3}) == "allgather(10 i8, in parts of 3, 4, 3)");
  CHECK(gather({5, 0, 5}) == "allgather(10 i8, in parts of 5, 0, 5)");
  std::vector<std::uint64_t> many(20, 1);
  many.back() = 2;
  CHECK(gather(many) ==
        "allgather(21 i8, in parts of 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ...)");
}

TEST_CASE("types have names and sizes") {
  CHECK(name_of(DataType::bf16) == "bf16");
  CHECK(name_of(DataType::boolean) == "bool");
  CHECK(size_of(DataType::boolean) == 1);
  CHECK(size_of(DataType::f16) == 2);
  CHECK(size_of(DataType::i64) == 8);
  CHECK(name_of(Reduction::bit_or) == "bit_or");
  CHECK(name_of(Kind::reducescatter) == "reducescatter");
}

TEST_CASE("equal shapes have equal digests, and a change of any field changes it") {
  rc::prop("digest", [] {
    const Shape shape = any_shape();
    Shape other = shape;
    RC_ASSERT(digest(other) == digest(shape));
    switch (*rc::gen::inRange(0, 9)) {
      case 0:
        other.kind = *any_of_enum<Kind>();
        break;
      case 1:
        other.type = *any_of_enum<DataType>();
        break;
      case 2:
        other.reduction = *any_of_enum<Reduction>();
        break;
      case 3:
        other.root = *rc::gen::arbitrary<std::int32_t>();
        break;
      case 4:
        other.count ^= 1ull << *rc::gen::inRange(0, 64);
        break;
      case 5:
        other.prescale = *rc::gen::arbitrary<double>();
        break;
      case 6:
        other.postscale = *rc::gen::arbitrary<double>();
        break;
      case 7:
        other.parts.push_back(*rc::gen::arbitrary<std::uint64_t>());
        break;
      default:
        if (!other.parts.empty())
          ++other.parts[*rc::gen::inRange<std::size_t>(0, other.parts.size())];
    }
    RC_ASSERT((digest(other) == digest(shape)) == (other == shape));
  });
}

TEST_CASE("shapes that differ in several fields have different digests") {
  std::vector<std::uint64_t> seen;
  Shape shape = allreduce_of(Reduction::sum, DataType::f32, 0);
  for (const Kind kind : {Kind::allreduce, Kind::broadcast, Kind::allgather})
    for (const DataType type : {DataType::u8, DataType::f32, DataType::boolean})
      for (std::int32_t root = 0; root < 16; ++root)
        for (std::uint64_t count = 0; count < 64; ++count)
          for (const double scale : {1.0, 0.5, -1.0}) {
            shape.kind = kind;
            shape.type = type;
            shape.root = root;
            shape.count = count << (root % 5 * 12);
            shape.postscale = scale;
            if (count == 0 && root % 5 != 0) continue;  // the same shape as another
            seen.push_back(digest(shape));
          }
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
}

TEST_CASE("zeros of both signs are equal scales") {
  Shape plus = allreduce_of(Reduction::sum, DataType::f32, 1), minus = plus;
  plus.prescale = 0.0;
  minus.prescale = -0.0;
  CHECK(plus == minus);
  CHECK(digest(plus) == digest(minus));
}

TEST_CASE("each kind of operation has its sizes") {
  const auto sizes = [](const Operation& op, int rank) {
    return std::pair(op.in_bytes(rank), op.out_bytes(rank));
  };
  using Sizes = std::pair<std::size_t, std::size_t>;
  CHECK(sizes({allreduce_of(Reduction::sum, DataType::f16, 10), {}, {}}, 3) == Sizes{20, 20});
  const Operation broadcast{shape_of(Kind::broadcast, DataType::i32, 5), {}, {}};
  CHECK(sizes(broadcast, 0) == Sizes{20, 20});
  CHECK(sizes(broadcast, 1) == Sizes{0, 20});
  CHECK(sizes({shape_of(Kind::allgather, DataType::f64, 6, {1, 2, 3}), {}, {}}, 1) ==
        Sizes{16, 48});
  CHECK(sizes({shape_of(Kind::reducescatter, DataType::f64, 6, {1, 2, 3}), {}, {}}, 2) ==
        Sizes{48, 24});
  CHECK(sizes({shape_of(Kind::alltoall, DataType::u16, 0), {1, 0, 2}, {4, 0, 0}}, 1) ==
        Sizes{6, 8});
  CHECK(sizes({Shape{}, {}, {}}, 1) == Sizes{0, 0});
  const std::uint64_t beyond = (1ull << 31) + 5;
  CHECK(sizes({allreduce_of(Reduction::sum, DataType::f32, beyond), {}, {}}, 0).first ==
        4 * beyond);
}

TEST_CASE("what is right is not refused") {
  CHECK(refusal(Shape{}) == std::nullopt);
  CHECK(refusal(shape_of(Kind::broadcast, DataType::boolean, 9)) == std::nullopt);
  CHECK(refusal(shape_of(Kind::allgather, DataType::f32, 9, {2, 0, 3, 4})) == std::nullopt);
  CHECK(refusal(shape_of(Kind::reducescatter, DataType::f32, 0, {0, 0, 0, 0})) == std::nullopt);
  CHECK(refusal({shape_of(Kind::alltoall, DataType::f32, 0), {1, 2, 0, 4}, {9, 2, 0, 0}}) ==
        std::nullopt);
  CHECK(refusal(allreduce_of(Reduction::sum, DataType::boolean, 7)) == std::nullopt);
  CHECK(refusal(allreduce_of(Reduction::bit_and, DataType::boolean, 7)) == std::nullopt);
  CHECK(refusal(allreduce_of(Reduction::average, DataType::i64, 7)) == std::nullopt);
  CHECK(refusal(allreduce_of(Reduction::adasum, DataType::bf16, 7)) == std::nullopt);
  CHECK(refusal(allreduce_of(Reduction::sum, DataType::f32, 0)) == std::nullopt);
}

TEST_CASE("a reduction is refused for types that it does not have") {
  CHECK(refusal(allreduce_of(Reduction::average, DataType::boolean, 1)) == "bool has no average");
  CHECK(refusal(allreduce_of(Reduction::bit_or, DataType::f16, 1)) ==
        "bit_or is for integers and bool, not for f16");
  CHECK(refusal(allreduce_of(Reduction::adasum, DataType::i32, 1)) ==
        "adasum is for floating-point types, not for i32");
  Shape scattered = shape_of(Kind::reducescatter, DataType::f32, 4, {1, 1, 1, 1});
  scattered.reduction = Reduction::adasum;
  CHECK(refusal(scattered) == "adasum is for allreduce only");
}

TEST_CASE("values that the enumerations do not have are refused") {
  CHECK(refusal(Operation{shape_of(Kind::barrier, DataType::u8, 0), {}, {}}) == std::nullopt);
  const auto refused = [](Shape shape) { return invalid({shape, {}, {}}, {}, 0, 1); };
  CHECK(refused(shape_of(static_cast<Kind>(6), DataType::u8, 0)) == "unknown kind of operation 6");
  CHECK(refused(shape_of(Kind::barrier, static_cast<DataType>(13), 0)) == "unknown data type 13");
  CHECK(refused(allreduce_of(static_cast<Reduction>(200), DataType::u8, 0)) ==
        "unknown reduction 200");
}

TEST_CASE("a root outside of the group is refused") {
  Shape shape = shape_of(Kind::broadcast, DataType::f32, 3);
  shape.root = 4;
  CHECK(refusal(shape) == "root 4 is not a rank of a group of 4");
  shape.root = -1;
  CHECK(refusal(shape) == "root -1 is not a rank of a group of 4");
}

TEST_CASE("scales are refused where they have no meaning") {
  Shape shape = allreduce_of(Reduction::sum, DataType::boolean, 3);
  shape.prescale = 2;
  CHECK(refusal(shape) == "bool takes no prescale");
  shape.type = DataType::f32;
  CHECK(refusal(shape) == std::nullopt);
  shape.postscale = NAN;
  CHECK(refusal(shape) == "postscale is not a number");
  shape = shape_of(Kind::broadcast, DataType::f32, 3);
  shape.postscale = 2;
  CHECK(refusal(shape) == "broadcast takes no postscale");
}

TEST_CASE("parts that do not make up the whole are refused") {
  const auto refused = [](std::uint64_t count, std::vector<std::uint64_t> parts) {
    return invalid({shape_of(Kind::allgather, DataType::f32, count, std::move(parts)), {}, {}}, {},
                   1, 4);
  };
  CHECK(refused(3, {1, 1, 1}) == "3 parts for 4 ranks");
  CHECK(refused(5, {1, 1, 1, 1}) == "the parts add up to 4 elements, not to 5");
  CHECK(refused(0, {1ull << 63, 1ull << 63, 0, 0}) == "the parts are too large for memory");
  CHECK(refusal(shape_of(Kind::broadcast, DataType::f32, 4, {1, 1, 1, 1})) ==
        "broadcast takes no parts");
}

TEST_CASE("splits that do not fit the group are refused") {
  const auto refused = [](std::vector<std::uint64_t> sends, std::vector<std::uint64_t> receives) {
    return invalid(
        {shape_of(Kind::alltoall, DataType::f32, 0), std::move(sends), std::move(receives)}, {}, 1,
        3);
  };
  CHECK(refused({1, 2}, {1, 2, 3}) == "2 sends for 3 ranks");
  CHECK(refused({1, 2, 3}, {}) == "0 receives for 3 ranks");
  CHECK(refused({1, 2, 3}, {1, 3, 3}) == "rank 1 sends itself 2 elements and receives 3");
  CHECK(refused({1ull << 63, 0, 1ull << 63}, {0, 0, 0}) == "the sends are too large for memory");
  CHECK(refused({0, 0, 0}, {1ull << 62, 0, 0}) == "the receives are too large for memory");
  CHECK(refusal(Operation{Shape{}, {1, 1, 1, 1}, {}}) == "barrier takes no sends");
}

TEST_CASE("counts that no memory holds are refused") {
  const auto refused = [](Kind kind, DataType type, std::uint64_t count) {
    return invalid({shape_of(kind, type, count), {}, {}}, {}, 0, 1);
  };
  CHECK(refused(Kind::allreduce, DataType::f64, 1ull << 61) ==
        "2305843009213693952 elements are too many for memory");
  CHECK(refused(Kind::barrier, DataType::u8, 3) == "barrier takes no count");
  CHECK(refused(Kind::alltoall, DataType::u8, 3) == "alltoall takes no count");
}

TEST_CASE("buffers of the wrong size are refused") {
  Bytes memory(200);
  const auto refused = [&](const Operation& op, std::size_t in, std::size_t out) {
    const Buffers buffers{Pieces(ByteView(memory).first(in)),
                          MutPieces(MutByteView(memory).subspan(100).first(out))};
    return invalid(op, buffers, 1, 2);
  };
  const Operation allreduce{allreduce_of(Reduction::sum, DataType::f32, 4), {}, {}};
  CHECK(refused(allreduce, 16, 16) == std::nullopt);
  CHECK(refused(allreduce, 15, 16) == "the input has 15 bytes instead of 16");
  CHECK(refused(allreduce, 16, 20) == "the output has 20 bytes instead of 16");
  const Operation broadcast{shape_of(Kind::broadcast, DataType::f32, 4), {}, {}};
  CHECK(refused(broadcast, 0, 16) == std::nullopt);  // not the root
  CHECK(refused(broadcast, 16, 16) == std::nullopt);
  CHECK(refused(broadcast, 8, 16) == "the input has 8 bytes instead of 0");
  CHECK(refused({Shape{}, {}, {}}, 0, 1) == "the output has 1 bytes instead of 0");
}

TEST_CASE("an input that overlaps the output must be the output") {
  Bytes memory(100);
  const auto refused = [&](std::size_t in, std::size_t out) {
    const Buffers buffers{Pieces(ByteView(memory).subspan(in, 16)),
                          MutPieces(MutByteView(memory).subspan(out, 16))};
    return invalid({allreduce_of(Reduction::sum, DataType::f32, 4), {}, {}}, buffers, 0, 2);
  };
  CHECK(refused(8, 8) == std::nullopt);
  CHECK(refused(8, 24) == std::nullopt);
  CHECK(refused(24, 8) == std::nullopt);
  CHECK(refused(8, 12) == "the input overlaps the output and is not the same");
  CHECK(refused(12, 8) == "the input overlaps the output and is not the same");
}

TEST_CASE("ranks in different operations say the same of it, whichever finds out") {
  const Peer a{0, "h0"}, b{1, "h1"};
  const Failure one = mismatch(a, "allreduce(max of 8 f64)", b, "allreduce(sum of 7 f64)");
  CHECK(one == mismatch(b, "allreduce(sum of 7 f64)", a, "allreduce(max of 8 f64)"));
  CHECK(one.code == Errc::invalid_input);
  CHECK(one.rank == -1);
  CHECK(one.text ==
        "the ranks do not call the same: rank 0 on host h0 is allreduce(max of 8 f64), rank 1 on "
        "host h1 is allreduce(sum of 7 f64)");
  CHECK(a.text() == "rank 0 on host h0");
  CHECK(one.during("opening").text.starts_with("opening: the ranks"));
}
