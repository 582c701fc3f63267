#pragma once

#include <cstddef>

// This binary counts what it allocates (allocations.cc replaces operator new), so that a test can
// say how much memory a hostile input costs.
namespace corro::test {

void forget_allocations();

// The biggest one of this thread since.
std::size_t biggest_allocation();

// No CHECK in the call: what that allocates depends on the reporter.
template <class Call>
std::size_t biggest_allocation_during(Call call) {
  forget_allocations();
  call();
  return biggest_allocation();
}

// Enough for an Error with its sentence, and for nothing that an attacker chooses.
inline constexpr std::size_t kASentence = 512;

}  // namespace corro::test
