#include "runtime/domain/waiting.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace corro::runtime;
using namespace std::chrono_literals;

namespace {

CpuClaim claim(std::uint64_t mask, std::uint64_t quota = 0) {
  CpuClaim out;
  out.mask[0] = mask;
  out.quota_thousandths = quota;
  return out;
}

}  // namespace

TEST_CASE("processors are those of all members together, cut to the quota") {
  CHECK(processors_of(std::vector{claim(0b11), claim(0b11)}) == 2);
  CHECK(processors_of(std::vector{claim(0b01), claim(0b10)}) == 2);
  CHECK(processors_of(std::vector{claim(0b01), claim(0b01)}) == 1);
  CHECK(processors_of(std::vector{claim(0xff, 2500), claim(0xff)}) == 2.5);
  CHECK(processors_of(std::vector{claim(0)}) == 1);
}

TEST_CASE("ranks spin while each has a processor, and else yield and sleep") {
  CHECK(spin_policy(2, 2).spin > 0us);
  CHECK(spin_policy(2, 1.5).spin == 0us);
  CHECK(spin_policy(3, 2).spin == 0us);
  CHECK(spin_policy(3, 2).yields > 0);
}

TEST_CASE("the quota of a control group as the kernel writes it") {
  CHECK(parse_cpu_max("max 100000") == 0);
  CHECK(parse_cpu_max("150000 100000") == 1500);
  CHECK(parse_cpu_max("50000 100000\n") == 500);
  CHECK(parse_cpu_max("") == 0);
  CHECK(parse_cpu_max("100000") == 0);
  CHECK(parse_cpu_max("100000 0") == 0);
}

TEST_CASE("this process may run somewhere") {
  CHECK(processors_of(std::vector{own_cpu_claim()}) >= 0.1);
}
