#include "runtime/op/kernel_table.h"

#include <vector>

#include "base/assert.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace corro::runtime {

namespace {

// What the compiler may use for each of Highway's targets (hwy/ops/set_macros-inl.h).  The builtin
// also asks whether the system saves the registers.
#ifdef __x86_64__
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
bool has_sse4() {
  return __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
         __builtin_cpu_supports("sse4.2");
}
bool has_avx2() {
  return has_sse4() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_f16c();
}
bool has_avx3() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#else
bool has_sse4() {
  return false;
}
bool has_avx2() {
  return false;
}
bool has_avx3() {
  return false;
}
#endif

std::vector<const KernelTable*> found() {
  const CompiledTables compiled = compiled_tables();
  std::vector<const KernelTable*> tables;
  if (compiled.avx3 && has_avx3()) tables.push_back(compiled.avx3);
  if (compiled.avx2 && has_avx2()) tables.push_back(compiled.avx2);
  if (compiled.sse4 && has_sse4()) tables.push_back(compiled.sse4);
  tables.push_back(compiled.plain);
  return tables;
}

}  // namespace

KernelTable::Reduce KernelTable::reducer(DataType type, Reduction reduction) const {
  if (reduction == Reduction::average) reduction = Reduction::sum;
  const Reduce one = reducers[static_cast<std::size_t>(type)][static_cast<std::size_t>(reduction)];
  CORRO_ASSERT(one != nullptr);
  return one;
}

const KernelTable::Arithmetic& KernelTable::of(DataType type) const {
  const Arithmetic& one = arithmetic[static_cast<std::size_t>(type)];
  CORRO_ASSERT(one.dot != nullptr);
  return one;
}

std::span<const KernelTable* const> kernel_tables() {
  static const std::vector<const KernelTable*> tables = found();
  return tables;
}

}  // namespace corro::runtime
