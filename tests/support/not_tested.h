#pragma once

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string_view>

namespace corro::test {

// What the running test cannot try here, said where tests/tally counts it: this Catch2 knows no
// skipping, and its report for programs has no warnings.
inline void not_tested(std::string_view why) {
  const auto name = Catch::getResultCapture().getCurrentTestName();
  const auto line = fmt::format("SKIPPED {}: {}\n", name, why);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace corro::test
