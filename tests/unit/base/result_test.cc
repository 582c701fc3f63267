#include "base/result.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <memory>
#include <set>

#include "tests/support/print_error.h"

namespace corro {

TEST_CASE("a result is a value or the reason why there is none") {
  const Result<int> value = 7;
  REQUIRE(value);
  CHECK(*value == 7);

  const Result<int> none = Error(Errc::not_found, "no such thing");
  REQUIRE_FALSE(none);
  CHECK(none.error() == Error(Errc::not_found, "no such thing"));
}

TEST_CASE("a result may carry what can only be moved") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(result);
  CHECK(*taken == 3);
}

TEST_CASE("an error reads from the outside in, and keeps its code") {
  const Error error = Error(Errc::timed_out, "timed out").during("connecting").during("host b");
  CHECK(error.text() == "host b: connecting: timed out");
  CHECK(error.code() == Errc::timed_out);
}

TEST_CASE("an error of the system says what was being done and what the system said") {
  errno = ENOENT;
  CHECK(Error::from_errno("opening x") == Error(Errc::io, "opening x: No such file or directory"));
  CHECK(Error::from_errno("connecting", ETIMEDOUT).code() == Errc::timed_out);
}

TEST_CASE("every code has a name of its own") {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(last_of(Errc{})); ++code)
    names.insert(name_of(static_cast<Errc>(code)));
  CHECK(names.size() == static_cast<std::size_t>(last_of(Errc{})) + 1);
  CHECK_FALSE(names.contains("unknown"));
}

}  // namespace corro
