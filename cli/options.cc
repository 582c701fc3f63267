#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "base/assert.h"
#include "base/text.h"
#include "cli/refusal.h"

namespace corro::cli {

namespace {

bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::string_view stripped(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Without the underscores that Python allows between digits; none: one stands elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_')
      out += text[i];
    else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1]))
      return std::nullopt;
  }
  return out;
}

// What from_chars can read of it: digits of Python's without blanks, underscores and a plus.
std::optional<std::string> bare_number(std::string_view text) {
  text = stripped(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return without_underscores(text);
}

// Python's have no limits; what is beyond ours is beyond every option's.
template <class Number>
std::optional<Number> python_number(std::string_view text) {
  const auto bare = bare_number(text);
  if (!bare) return std::nullopt;
  Number value{};
  const char* end_of_text = bare->data() + bare->size();
  const auto [end, error] = std::from_chars(bare->data(), end_of_text, value);
  if (end != end_of_text || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    return bare->front() == '-' ? std::numeric_limits<Number>::lowest()
                                : std::numeric_limits<Number>::max();
  return value;
}

std::string limits_text(const Limits& limits) {
  return fmt::format("from {} to {:.10g}", limits.least, limits.most);
}

std::optional<std::string> out_of_limits(const Option& option, double number,
                                         const std::string& text) {
  if (number >= option.limits.least && number <= option.limits.most) return std::nullopt;
  return argument_text(option, fmt::format("must be {}, not {}", limits_text(option.limits), text));
}

std::optional<std::string> complaint_about(const Option& option, const std::string& value) {
  switch (option.kind) {
    case Kind::integer: {
      const auto number = python_int(value);
      if (!number) return argument_text(option, "invalid int value: " + python_repr(value));
      return out_of_limits(option, static_cast<double>(*number), value);
    }
    case Kind::number: {
      const auto number = python_float(value);
      if (!number) return argument_text(option, "invalid float value: " + python_repr(value));
      return out_of_limits(option, *number, value);
    }
    case Kind::choice: {
      const auto choices = choices_of(option);
      if (std::find(choices.begin(), choices.end(), value) != choices.end()) return std::nullopt;
      return argument_text(option, fmt::format("invalid choice: {} (choose from '{}')",
                                               python_repr(value), fmt::join(choices, "', '")));
    }
    case Kind::cores:
      for (const auto core : split(value, ','))
        if (const auto number = parse_int(core); !number || *number < 0)
          return argument_text(option, "expected cores as 0,2,4, not " + python_repr(value));
      return std::nullopt;
    case Kind::interfaces:
      for (const auto name : split(value, ','))
        if (name.empty())
          return argument_text(option, "expected names as eth0,eth1, not " + python_repr(value));
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string_view title_of(Group group) {
  switch (group) {
    case Group::general:
      return "options";
    case Group::hosts:
      return "hosts";
    case Group::workers:
      return "workers";
    case Group::output:
      return "output";
    case Group::checks:
      return "checks";
    case Group::ssh:
      return "SSH";
    case Group::elastic:
      return "elastic training";
    case Group::tuning:
      return "tuneable parameters";
    case Group::autotune:
      return "autotuning";
    case Group::timeline:
      return "timeline";
    case Group::stall:
      return "stall check";
    case Group::library:
      return "libraries";
    case Group::logging:
      return "logging";
    case Group::controller:
      return "controller";
  }
  return {};
}

std::string_view Option::name() const {
  for (const auto each : names_of(*this))
    if (each.starts_with("--")) return each;
  CORRO_ASSERT(false);
  return {};
}

std::vector<std::string_view> names_of(const Option& option) {
  return split(option.names, '/');
}

std::vector<std::string_view> choices_of(const Option& option) {
  return option.choices.empty() ? std::vector<std::string_view>{} : split(option.choices, '|');
}

std::span<const OptionName> option_names() {
  static const auto all = [] {
    std::vector<OptionName> names;
    for (const Option& option : options())
      for (const auto name : names_of(option)) names.push_back({name, &option});
    return names;
  }();
  return all;
}

const Option* find_option(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Option*> all;
    for (const OptionName& each : option_names()) all.emplace(each.name, each.option);
    return all;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

const Option& option(std::string_view name) {
  const Option* found = find_option(name);
  CORRO_ASSERT(found && found->name() == name);
  return *found;
}

std::optional<std::string> complaint_about(const Option& option,
                                           std::span<const std::string> values) {
  for (const std::string& value : values)
    if (auto complaint = complaint_about(option, value)) return complaint;
  return std::nullopt;
}

std::string python_repr(std::string_view text) {
  const bool has_single = text.find('\'') != text.npos, has_double = text.find('"') != text.npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + quote;
}

std::optional<std::int64_t> python_int(std::string_view text) {
  return python_number<std::int64_t>(text);
}

std::optional<double> python_float(std::string_view text) {
  return python_number<double>(text);
}

}  // namespace corro::cli
