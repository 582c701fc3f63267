#include "cli/values.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

namespace corro::cli {

namespace {

bool same_setting(const Option& a, const Option& b) {
  return &a == &b || (!a.key.empty() && a.key == b.key) ||
         (!a.variable.empty() && a.variable == b.variable);
}

// As Python prints a float, since the variables' readers have always been given that.
std::string python_float_text(double value) {
  const auto text = fmt::format("{}", value);
  return text.find_first_of(".en") == text.npos ? text + ".0" : text;
}

std::string variable_text(const Option& option, const Values& values) {
  if (!option.takes_value()) return std::string(option.sets);
  const std::string text = *values.text(option.name());
  if (option.kind == Kind::integer) return std::to_string(*python_int(text) * option.scale);
  return option.kind == Kind::number ? python_float_text(*python_float(text)) : text;
}

void add(const Option& option, CLI::App& to) {
  const std::string name(option.name());
  if (!option.takes_value())
    to.add_flag(name)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  else if (option.repeatable)
    to.add_option(name)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->expected(1);
  else
    to.add_option(name)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->expected(option.arity);
}

}  // namespace

const std::vector<std::string>& Values::all(std::string_view name) const {
  static const std::vector<std::string> none;
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? none : found->second;
}

std::optional<std::string> Values::text(std::string_view name) const {
  const auto& texts = all(name);
  return texts.empty() ? std::nullopt : std::optional(texts.back());
}

std::optional<int> Values::integer(std::string_view name) const {
  const auto found = text(name);
  return found ? std::optional(static_cast<int>(*python_int(*found))) : std::nullopt;
}

std::optional<double> Values::number(std::string_view name) const {
  const auto found = text(name);
  return found ? python_float(*found) : std::nullopt;
}

Result<Values> gather(std::span<const Given> given) try {
  CLI::App app;
  app.set_help_flag();
  // It compares every word with every option, so it is told of no more than it needs.
  std::set<const Option*> known;
  for (const Given& each : given)
    if (known.insert(each.option).second) add(*each.option, app);
  std::vector<std::string> words;
  for (const Given& each : given) {
    const std::string name(each.option->name());
    if (each.values.empty()) words.push_back(name);
    // A second '=' in front: CLI11 takes an empty value for none, and "[a]" for a list.
    for (const std::string& value : each.values)
      words.push_back(fmt::format("{}=={}", name, value));
  }
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  app.parse(words);

  std::map<std::string, std::vector<std::string>, std::less<>> by_name;
  for (const CLI::Option* each : app.get_options()) {
    if (each->count() == 0) continue;
    auto& texts = by_name[each->get_name()] = each->results();
    if (option(each->get_name()).takes_value())
      for (std::string& text : texts) text.erase(0, 1);
  }
  return Values(std::move(by_name));
} catch (const CLI::Error& e) {
  return Error(Errc::invalid_input, e.what());
}

std::vector<Given> merged(std::span<const Given> file, std::span<const Given> command_line) {
  std::vector<Given> out;
  for (const Given& given : file)
    if (std::none_of(command_line.begin(), command_line.end(),
                     [&](const Given& said) { return same_setting(*said.option, *given.option); }))
      out.push_back(given);
  out.insert(out.end(), command_line.begin(), command_line.end());
  return out;
}

std::vector<launcher::Variable> worker_variables(const Values& values) {
  std::vector<launcher::Variable> out;
  for (const Option& option : options()) {
    if (option.variable.empty() || !values.has(option.name())) continue;
    if (!option.needs.empty() && !values.has(option.needs)) continue;
    out.emplace_back(option.variable, variable_text(option, values));
  }
  return out;
}

}  // namespace corro::cli
