#include "runtime/op/kernels.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "runtime/op/kernel_table.h"
#include "tests/unit/runtime/op/reference.h"

using namespace corro;
using namespace corro::runtime;
using reference::elements;
using reference::kFloats;
using reference::kReductions;
using reference::kTypes;

namespace {

constexpr std::size_t kCounts[] = {0, 1, 2, 3, 5, 15, 16, 31, 33, 64, 127, 257, 1031};

// Data that begins at an odd address and ends where the memory ends, so that a sanitizer sees a
// byte too much on either side.
class Misplaced {
 public:
  Misplaced(const Bytes& data, std::size_t by)
      : memory_(new std::uint8_t[data.size() + by]), size_(data.size()), by_(by) {
    if (!data.empty()) std::memcpy(memory_.get() + by, data.data(), data.size());
  }
  MutByteView view() { return {memory_.get() + by_, size_}; }
  Bytes bytes() { return Bytes(view().begin(), view().end()); }

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t size_, by_;
};

struct Inputs {
  std::vector<Misplaced> sources;
  std::vector<const std::uint8_t*> pointers;

  explicit Inputs(const std::vector<Bytes>& data) {
    for (std::size_t i = 0; i < data.size(); ++i) sources.emplace_back(data[i], i % 4);
    for (Misplaced& one : sources) pointers.push_back(one.view().data());
  }
};

std::string what(const KernelTable& table, Reduction reduction, DataType type, std::size_t count) {
  return std::string(table.target) + ": " + std::string(name_of(reduction)) + " of " +
         std::to_string(count) + " " + std::string(name_of(type));
}

// One CHECK for each of a hundred thousand comparisons takes longer than the kernels.
void same(const Bytes& got, const Bytes& wanted, const std::string& of) {
  if (got == wanted) return;
  const auto at = std::mismatch(got.begin(), got.end(), wanted.begin()).first - got.begin();
  FAIL(of << " differs at byte " << at);
}

template <class T>
Bytes bytes_of_values(const std::vector<T>& values) {
  Bytes data(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(data.data(), values.data(), data.size());
  return data;
}

template <class T>
std::vector<T> values_of(const Bytes& data) {
  std::vector<T> values(data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), data.data(), data.size());
  return values;
}

}  // namespace

TEST_CASE("there are kernels for this CPU, and the best are used") {
  const auto tables = kernel_tables();
  REQUIRE(!tables.empty());
  CHECK(std::string(kernel_target()) == tables.front()->target);
}

TEST_CASE("every instruction set reduces any number of sources as the reference does, to the bit") {
  std::mt19937_64 random(1);
  for (const DataType type : kTypes)
    for (const std::size_t count : kCounts) {
      std::vector<Bytes> sources;
      while (sources.size() < 9) {
        sources.push_back(elements(type, count, random));
        Inputs inputs(sources);
        for (const Reduction reduction : kReductions) {
          if (!reference::taken(reduction, type)) continue;
          const Bytes wanted = reference::reduced(reduction, type, sources);
          for (const KernelTable* table : kernel_tables()) {
            Misplaced into(Bytes(wanted.size()), (count + sources.size()) % 3);
            table->reducer(type, reduction)(into.view().data(), inputs.pointers.data(),
                                            sources.size(), wanted.size());
            same(into.bytes(), wanted, what(*table, reduction, type, count));
          }
        }
      }
    }
  SUCCEED();
}

TEST_CASE("the result may take the place of any source") {
  std::mt19937_64 random(2);
  for (const DataType type : kTypes)
    for (const std::size_t count : kCounts) {
      std::vector<Bytes> sources;
      for (int i = 0; i < 4; ++i) sources.push_back(elements(type, count, random));
      const std::vector<Bytes> pair(sources.begin(), sources.begin() + 2);
      for (const Reduction reduction : kReductions) {
        if (!reference::taken(reduction, type)) continue;
        const Bytes of_all = reference::reduced(reduction, type, sources);
        const Bytes of_two = reference::reduced(reduction, type, pair);
        for (std::size_t in_place = 0; in_place < 4; ++in_place) {
          Inputs inputs(sources);
          const MutByteView into = inputs.sources[in_place].view();
          reduce_all(reduction, type, into, inputs.pointers);
          same(inputs.sources[in_place].bytes(), of_all, "reduce_all in place");
        }
        for (std::size_t in_place = 0; in_place < 2; ++in_place) {
          Inputs inputs(pair);
          reduce(reduction, type, inputs.sources[in_place].view(), inputs.sources[0].view(),
                 inputs.sources[1].view());
          same(inputs.sources[in_place].bytes(), of_two, "reduce in place");
        }
      }
    }
  SUCCEED();
}

TEST_CASE("two operands in either order give the same bits") {
  std::mt19937_64 random(3);
  for (const DataType type : kTypes) {
    Bytes a = elements(type, 100'000, random), b = elements(type, 100'000, random);
    // NaNs of all kinds on both sides, and zeros of both signs.
    for (std::size_t i = 0; i + 64 < a.size(); i += 640)
      for (std::size_t k = 0; k < 64; ++k) {
        a[i + k] |= 0x7f;
        b[i + k] |= static_cast<std::uint8_t>(0xf0 | k);
      }
    for (const Reduction reduction : kReductions) {
      if (!reference::taken(reduction, type)) continue;
      for (const KernelTable* table : kernel_tables()) {
        Bytes ab(a.size()), ba(a.size());
        const std::uint8_t* const forth[] = {a.data(), b.data()};
        const std::uint8_t* const back[] = {b.data(), a.data()};
        table->reducer(type, reduction)(ab.data(), forth, 2, a.size());
        table->reducer(type, reduction)(ba.data(), back, 2, a.size());
        same(ab, ba, what(*table, reduction, type, a.size()));
      }
    }
  }
  SUCCEED();
}

TEST_CASE("the least of two zeros is the negative one, and a NaN wins over all") {
  const auto reduced = [](Reduction reduction, float a, float b) {
    float into = 0;
    const auto raw = [](float& x) { return MutByteView(reinterpret_cast<std::uint8_t*>(&x), 4); };
    reduce(reduction, DataType::f32, raw(into), raw(a), raw(b));
    return into;
  };
  CHECK(std::signbit(reduced(Reduction::min, 0.0f, -0.0f)));
  CHECK(std::signbit(reduced(Reduction::min, -0.0f, 0.0f)));
  CHECK_FALSE(std::signbit(reduced(Reduction::max, 0.0f, -0.0f)));
  CHECK_FALSE(std::signbit(reduced(Reduction::max, -0.0f, 0.0f)));
  for (const Reduction reduction :
       {Reduction::sum, Reduction::product, Reduction::min, Reduction::max}) {
    CHECK(std::isnan(reduced(reduction, NAN, 1)));
    CHECK(std::isnan(reduced(reduction, -INFINITY, NAN)));
  }
}

TEST_CASE("every f16 and bf16 survives the way through f32") {
  for (const DataType type : {DataType::f16, DataType::bf16}) {
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    const Bytes data = bytes_of_values(all);
    const Bytes wanted = reference::reduced(Reduction::sum, type, {data});
    for (const KernelTable* table : kernel_tables()) {
      Bytes into(data.size());
      const std::uint8_t* source = data.data();
      table->reducer(type, Reduction::sum)(into.data(), &source, 1, into.size());
      same(into, wanted, what(*table, Reduction::sum, type, all.size()));
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!std::isnan(reference::float_at(type, data, i)))
        REQUIRE(std::memcmp(&wanted[2 * i], &data[2 * i], 2) == 0);
  }
}

TEST_CASE("floats are scaled and divided with one rounding to the type") {
  std::mt19937_64 random(4);
  for (const DataType type : kFloats) {
    Bytes data = elements(type, 20'000, random);
    if (size_of(type) == 2)
      for (std::uint32_t i = 0; i < 10'000; ++i) std::memcpy(&data[2 * i], &i, 2);
    const auto as_lane = [&](double x) {
      return type == DataType::f64 ? x : static_cast<float>(x);
    };
    for (const double factor : {0.5, 1.0 / 3, -1e-4, 1e5, 0.0, 3.0}) {
      Bytes multiplied(data.size()), divided(data.size());
      for (std::size_t i = 0; i < data.size() / size_of(type); ++i) {
        const double x = reference::float_at(type, data, i);
        reference::put_float(type, multiplied, i, as_lane(x * as_lane(factor)));
        reference::put_float(type, divided, i, as_lane(as_lane(x / 7) * as_lane(factor)));
      }
      for (const KernelTable* table : kernel_tables()) {
        Bytes into(data.size());
        table->of(type).multiply(into.data(), data.data(), data.size(), 1, factor);
        same(into, multiplied, what(*table, Reduction::sum, type, 0) + " scaled");
        table->of(type).divide(into.data(), data.data(), data.size(), 7, factor);
        same(into, divided, what(*table, Reduction::sum, type, 0) + " divided");
      }
      Bytes in_place = data;
      scale(type, in_place, in_place, factor);
      same(in_place, multiplied, "scale in place");
      in_place = data;
      finish({Reduction::average, type, 7, factor}, in_place);
      same(in_place, divided, "finish");
    }
  }
  SUCCEED();
}

TEST_CASE("integers are averaged exactly, toward zero") {
  const auto averaged = [](auto... x) {
    using T = std::common_type_t<decltype(x)...>;
    Bytes data = bytes_of_values(std::vector<T>{x...});
    constexpr bool is_signed = std::is_signed_v<T>;
    finish({Reduction::average, is_signed ? DataType::i64 : DataType::u64, 3, 1}, data);
    return values_of<T>(data);
  };
  const std::int64_t big = std::numeric_limits<std::int64_t>::max();
  CHECK(averaged(std::int64_t{7}, std::int64_t{-7}, std::int64_t{-2}, big) ==
        std::vector<std::int64_t>{2, -2, 0, big / 3});
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  CHECK(averaged(std::uint64_t{8}, most) == std::vector<std::uint64_t>{2, most / 3});

  Bytes small = bytes_of_values(std::vector<std::int8_t>{-128, 127, 2, -2});
  finish({Reduction::average, DataType::i8, 300, 1}, small);  // more ranks than an i8 can count
  CHECK(values_of<std::int8_t>(small) == std::vector<std::int8_t>{0, 0, 0, 0});
}

TEST_CASE("integers are scaled in f64, toward zero, and stay within their type") {
  Bytes data = bytes_of_values(std::vector<std::int8_t>{3, -3, 100, -100, 0});
  Bytes into(data.size());
  scale(DataType::i8, into, data, 1.5);
  CHECK(values_of<std::int8_t>(into) == std::vector<std::int8_t>{4, -4, 127, -128, 0});
  scale(DataType::i8, into, data, INFINITY);
  CHECK(values_of<std::int8_t>(into) == std::vector<std::int8_t>{127, -128, 127, -128, 0});
  Bytes wide = bytes_of_values(std::vector<std::uint64_t>{1ull << 63, 5});
  scale(DataType::u64, wide, wide, 4);
  CHECK(values_of<std::uint64_t>(wide) == std::vector<std::uint64_t>{~0ull, 20});
  finish({Reduction::sum, DataType::u64, 9, 0.5}, wide);
  CHECK(values_of<std::uint64_t>(wide)[1] == 10);
}

TEST_CASE("a finish that does nothing leaves every bit, NaNs included") {
  std::mt19937_64 random(5);
  for (const DataType type : kTypes) {
    const Bytes data = elements(type, 500, random);
    Bytes same_data = data;
    finish({Reduction::max, type, 5, 1}, same_data);
    CHECK(same_data == data);
  }
}

TEST_CASE("to reduce and finish in one pass is to do one after the other") {
  std::mt19937_64 random(9);
  for (const DataType type : kTypes) {
    if (type == DataType::boolean) continue;
    for (const std::size_t count : {0ul, 5ul, 4096ul, 20'001ul})
      for (const Finish& how :
           {Finish{Reduction::average, type, 3, 1}, Finish{Reduction::sum, type, 3, 0.5},
            Finish{Reduction::max, type, 3, 1}}) {
        std::vector<Bytes> sources;
        for (int i = 0; i < 3; ++i) sources.push_back(elements(type, count, random));
        Inputs inputs(sources);
        Bytes wanted(sources[0].size());
        reduce_all(how.reduction, type, wanted, inputs.pointers);
        finish(how, wanted);
        reduce_all(how, inputs.sources[1].view(), inputs.pointers);
        same(inputs.sources[1].bytes(), wanted, "reduce_all and finish");
      }
  }
  SUCCEED();
}

TEST_CASE("a dot product has the same bits in every instruction set") {
  std::mt19937_64 random(6);
  for (const DataType type : kFloats)
    for (const std::size_t count : kCounts) {
      Bytes a(count * size_of(type)), b(a.size());
      long double sum = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const auto value = [&] { return static_cast<double>(random() % 2001) / 1000 - 1; };
        reference::put_float(type, a, i, value());
        reference::put_float(type, b, i, value());
        sum += static_cast<long double>(reference::float_at(type, a, i)) *
               reference::float_at(type, b, i);
      }
      const double first = dot(type, a, b);
      CHECK(first == Approx(static_cast<double>(sum)).margin(1e-12));
      CHECK(dot(type, b, a) == first);
      Misplaced odd(a, 1);
      for (const KernelTable* table : kernel_tables())
        CHECK(table->of(type).dot(odd.view().data(), b.data(), a.size()) == first);
    }
}

TEST_CASE("a combination is computed in the lanes of the type, in either order") {
  std::mt19937_64 random(7);
  for (const DataType type : kFloats)
    for (const std::size_t count : kCounts) {
      const Bytes a = elements(type, count, random), b = elements(type, count, random);
      const double x = 0.3, y = -1.7;
      const auto as_lane = [&](double v) {
        return type == DataType::f64 ? v : static_cast<float>(v);
      };
      Bytes wanted(a.size());
      for (std::size_t i = 0; i < count; ++i) {
        const double left = as_lane(as_lane(x) * reference::float_at(type, a, i));
        const double right = as_lane(as_lane(y) * reference::float_at(type, b, i));
        reference::put_float(type, wanted, i, as_lane(left + right));
      }
      for (const KernelTable* table : kernel_tables()) {
        Bytes into(a.size());
        table->of(type).combine(into.data(), x, a.data(), y, b.data(), a.size());
        same(into, wanted, what(*table, Reduction::adasum, type, count));
      }
      Bytes in_place = b;
      combine(type, in_place, y, in_place, x, a);
      same(in_place, wanted, "combine in place");
    }
  SUCCEED();
}

TEST_CASE("a copy is a copy, whatever its size and place") {
  std::mt19937_64 random(8);
  for (const std::size_t bytes : {0ul, 1ul, 63ul, 64ul, 65ul, 1000ul, 4096ul, 100'001ul})
    for (const std::size_t by : {0ul, 1ul, 37ul}) {
      const Bytes data = elements(DataType::u8, bytes, random);
      Misplaced from(data, by), into(Bytes(bytes), by / 2);
      copy(into.view(), from.view());
      CHECK(into.bytes() == data);
      Misplaced part(Bytes(bytes), by);
      copy_part(part.view(), from.view(), 1ul << 30);
      CHECK(part.bytes() == data);
      for (const KernelTable* table : kernel_tables()) {
        Misplaced streamed(Bytes(bytes), by);
        table->stream(streamed.view().data(), from.view().data(), bytes);
        CHECK(streamed.bytes() == data);
      }
    }
}
