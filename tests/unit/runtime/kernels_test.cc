#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "runtime/collective/kernels.h"

using namespace corro;
using namespace corro::runtime;

namespace {

template <class T>
constexpr DataType kType = std::is_same_v<T, float> ? DataType::f32 : DataType::f64;

template <class T>
MutByteView bytes(std::vector<T>& values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> reduced(Reduction reduction, std::vector<T> a, std::vector<T> b) {
  reduce(reduction, kType<T>, bytes(a), bytes(b));
  return a;
}

}  // namespace

TEMPLATE_TEST_CASE("elements are reduced one by one", "", float, double) {
  using Values = std::vector<TestType>;
  const Values a = {1, -2, 3}, b = {4, -5, -6};
  CHECK(reduced(Reduction::sum, a, b) == Values{5, -7, -3});
  CHECK(reduced(Reduction::average, a, b) == Values{5, -7, -3});  // divided when finished
  CHECK(reduced(Reduction::min, a, b) == Values{1, -5, -6});
  CHECK(reduced(Reduction::max, a, b) == Values{4, -2, 3});
  CHECK(reduced(Reduction::sum, Values{}, Values{}).empty());
}

TEMPLATE_TEST_CASE("any number of elements is the same as one after the other", "", float, double) {
  rc::prop("sum", [] {
    const auto a = *rc::gen::container<std::vector<TestType>>(rc::gen::arbitrary<TestType>());
    const auto b =
        *rc::gen::container<std::vector<TestType>>(a.size(), rc::gen::arbitrary<TestType>());
    const auto sum = reduced(Reduction::sum, a, b);
    for (std::size_t i = 0; i < a.size(); ++i) RC_ASSERT(sum[i] == a[i] + b[i]);
  });
}

TEMPLATE_TEST_CASE("only an average is finished by a division", "", float, double) {
  const auto finished = [](Reduction reduction) {
    std::vector<TestType> values = {3, 10};
    finish(reduction, kType<TestType>, bytes(values), 3);
    return values;
  };
  CHECK(finished(Reduction::average) == std::vector<TestType>{1, TestType(10) / 3});
  for (const auto other : {Reduction::sum, Reduction::min, Reduction::max})
    CHECK(finished(other) == std::vector<TestType>{3, 10});
}
