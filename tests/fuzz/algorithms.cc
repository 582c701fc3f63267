#include "runtime/pattern/overrides.h"
#include "tests/fuzz/fuzz.h"

using namespace corro;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const auto rules = fuzz::in_time([&] { return runtime::Overrides::parse(text); });
  if (!rules) return 0;
  for (const auto& rule : rules->rules())
    fuzz::require(runtime::can_do(rule.algorithm, rule.kind), "a rule can be followed");
  const auto again = runtime::Overrides::parse(rules->text());
  fuzz::require(again && *again == *rules, "rules are read as they are written");
  return 0;
}
