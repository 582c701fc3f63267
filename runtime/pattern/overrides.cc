#include "runtime/pattern/overrides.h"

#include <fmt/format.h>
#include <algorithm>
#include <span>
#include <utility>

#include "base/text.h"

namespace corro::runtime {

namespace {

using Rule = Overrides::Rule;

constexpr std::pair<char, int> kUnits[] = {{'G', 30}, {'M', 20}, {'K', 10}};

Error invalid(std::string text) {
  return Error(Errc::invalid_input, std::move(text));
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// "ring, tree or chain"
template <class E>
std::string list(std::span<const E> values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += i + 1 == values.size() ? " or " : ", ";
    text += name_of(values[i]);
  }
  return text;
}

std::string list_of_kinds() {
  std::vector<Kind> kinds;
  for (int i = 0; i <= static_cast<int>(last_of(Kind{})); ++i)
    kinds.push_back(static_cast<Kind>(i));
  return list(std::span<const Kind>(kinds));
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto wrong = [&] {
    return invalid(fmt::format("'{}' is no size: expected bytes, such as 65536, 64K or 1M", text));
  };
  if (text.empty()) return wrong();
  std::string_view digits = text;
  int shift = 0;
  for (const auto& [unit, bits] : kUnits)
    if ((text.back() & ~0x20) == unit) shift = bits;
  if (shift > 0) digits.remove_suffix(1);
  const auto number = parse_int(digits);
  if (!number || *number < 0 || digits.front() == '-') return wrong();
  if (*number > (std::numeric_limits<long long>::max() >> shift))
    return invalid(fmt::format("'{}' is too large a size", text));
  return static_cast<std::uint64_t>(*number) << shift;
}

// Sets `from` and `below`.
Result<Unit> parse_sizes(std::string_view text, Rule& rule) {
  if (text == "*") return Unit();
  const bool below = text.starts_with("<") && !text.starts_with("<=");
  if (!below && !text.starts_with(">="))
    return invalid(fmt::format("'{}': expected sizes as <64K, >=64K or *", text));
  const auto size = parse_size(text.substr(below ? 1 : 2));
  if (!size) return size.error();
  if (below && *size == 0) return invalid("no size is below 0");
  (below ? rule.below : rule.from) = *size;
  return Unit();
}

Result<Rule> parse_rule(std::string_view text) {
  const auto equals = text.rfind('=');
  // The last "=" of "allreduce:>=64K" belongs to the sizes.
  if (equals == text.npos || (equals > 0 && text[equals - 1] == '>'))
    return invalid("expected collective=algorithm or collective:sizes=algorithm");
  const auto left = text.substr(0, equals),
             colon = left.substr(std::min(left.find(':'), left.size()));
  const auto kind_name = left.substr(0, left.size() - colon.size());
  const auto algorithm_name = text.substr(equals + 1);

  const auto kind = kind_named(kind_name);
  if (!kind)
    return invalid(
        fmt::format("no collective is called '{}'; there are {}", kind_name, list_of_kinds()));
  const auto algorithm = algorithm_named(algorithm_name);
  if (!algorithm || !can_do(*algorithm, *kind))
    return invalid(fmt::format("no {} is called '{}'; there is {}", kind_name, algorithm_name,
                               list(algorithms_for(*kind))));
  Rule rule{.kind = *kind, .algorithm = *algorithm};
  if (!colon.empty()) {
    const auto sizes = parse_sizes(colon.substr(1), rule);
    if (!sizes) return sizes.error();
  }
  if (rule.from > 0 && (*kind == Kind::alltoall || *kind == Kind::barrier))
    return invalid(fmt::format("never applies, because {} counts as 0 bytes", kind_name));
  return rule;
}

// Rules reach down to 0 or up without limit, so together they leave one gap at most.
bool covered(const Rule& rule, std::span<const Rule> earlier) {
  std::uint64_t gap_begin = 0, gap_end = Overrides::kNoLimit;
  for (const Rule& r : earlier) {
    if (r.kind != rule.kind) continue;
    if (r.from == 0) gap_begin = std::max(gap_begin, r.below);
    if (r.below == Overrides::kNoLimit) gap_end = std::min(gap_end, r.from);
  }
  return std::max(gap_begin, rule.from) >= std::min(gap_end, rule.below);
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  for (const auto& [unit, bits] : kUnits)
    if (bytes != 0 && bytes % (std::uint64_t{1} << bits) == 0)
      return fmt::format("{}{}", bytes >> bits, unit);
  return fmt::format("{}", bytes);
}

std::string Rule::text() const {
  const std::string sizes = below != kNoLimit ? fmt::format(":<{}", size_text(below))
                            : from != 0       ? fmt::format(":>={}", size_text(from))
                                              : "";
  return fmt::format("{}{}={}", name_of(kind), sizes, name_of(algorithm));
}

Result<Overrides> Overrides::parse(std::string_view text) {
  Overrides overrides;
  if (trim(text).empty()) return overrides;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view rule_text = trim(part);
    auto rule = parse_rule(rule_text);
    if (rule && covered(*rule, overrides.rules_))
      rule = invalid("never applies, because the rules before it cover all its sizes");
    if (!rule) return std::move(rule.error()).during(fmt::format("rule '{}'", rule_text));
    overrides.rules_.push_back(*rule);
  }
  return overrides;
}

std::optional<Algorithm> Overrides::find(Kind kind, std::uint64_t bytes) const {
  for (const Rule& rule : rules_)
    if (rule.fits(kind, bytes)) return rule.algorithm;
  return std::nullopt;
}

std::string Overrides::text() const {
  std::string text;
  for (const Rule& rule : rules_) text += (text.empty() ? "" : ",") + rule.text();
  return text;
}

}  // namespace corro::runtime
