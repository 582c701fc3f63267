#include "launcher/machine/topology.h"

#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/support/print_error.h"

namespace corro::launcher {

namespace {

Topology described_by(const char* synthetic) {
  ::setenv("HWLOC_SYNTHETIC", synthetic, 1);
  const auto topology = read_topology();
  ::unsetenv("HWLOC_SYNTHETIC");
  if (!topology) FAIL(topology.error().text());
  return *topology;
}

}  // namespace

TEST_CASE("cores, their hardware threads and their NUMA nodes are read") {
  CHECK(described_by("numa:2 core:2 pu:2") ==
        Topology{.cores = {{{0, 1}, 0}, {{2, 3}, 0}, {{4, 5}, 1}, {{6, 7}, 1}},
                 .allowed = {0, 1, 2, 3, 4, 5, 6, 7}});
  // As Linux counts: first the first thread of every core.
  CHECK(described_by("core:2 pu:2(indexes=0,2,1,3)") ==
        Topology{.cores = {{{0, 2}, 0}, {{1, 3}, 0}}, .allowed = {0, 1, 2, 3}});
}

TEST_CASE("where nothing is said of cores, each hardware thread is one") {
  CHECK(described_by("numa:1 pu:3") ==
        Topology{.cores = {{{0}, 0}, {{1}, 0}, {{2}, 0}}, .allowed = {0, 1, 2}});
}

TEST_CASE("a topology travels") {
  const auto topology = described_by("numa:4 core:8 pu:2");
  CHECK(topology.cores.size() == 32);
  CHECK(*decode<Topology>(encode(topology)) == topology);
}

TEST_CASE("on this machine, what this process may use is allowed") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &before)) last = cpu;
  CPU_ZERO(&one);
  CPU_SET(last, &one);

  const auto all = read_topology();
  REQUIRE(all);
  CHECK(all->allowed.size() == static_cast<std::size_t>(CPU_COUNT(&before)));
  CHECK_FALSE(all->cores.empty());

  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const auto restricted = read_topology();
  cpu_set_t after;
  REQUIRE(::sched_getaffinity(0, sizeof after, &after) == 0);
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  REQUIRE(restricted);
  CHECK(restricted->allowed == Cpus{last});
  CHECK(CPU_EQUAL(&one, &after));  // looking has not moved us
}

TEST_CASE("without hwloc it is said what to install") {
  CHECK(read_topology("libcorro-no-such-library.so.15").error() ==
        Error(Errc::not_found,
              "looking at the cores of this machine: libcorro-no-such-library.so.15 "
              "is not installed (on Debian: apt install libhwloc15)"));
  CHECK(read_topology("libm.so.6").error() ==
        Error(Errc::unsupported, "looking at the cores of this machine: libm.so.6 is not hwloc 2"));
}

}  // namespace corro::launcher
