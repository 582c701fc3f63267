#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "launcher/plan/recipe.h"

namespace corro::cli {

// What the user set, from wherever, by the options' names.  All of it has been checked against the
// table, so that a number asked for as a number is one.
class Values {
 public:
  explicit Values(std::map<std::string, std::vector<std::string>, std::less<>> by_name)
      : by_name_(std::move(by_name)) {}

  bool has(std::string_view name) const { return by_name_.contains(name); }
  const std::vector<std::string>& all(std::string_view name) const;
  // Of an option that was given twice the last counts.
  std::optional<std::string> text(std::string_view name) const;
  std::optional<int> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> by_name_;
};

// Hands what was given to CLI11, under canonical names: it refuses `-np` and knows no
// abbreviations.
Result<Values> gather(std::span<const Given>);

// What the configuration file says, without what the command line says otherwise.
std::vector<Given> merged(std::span<const Given> file, std::span<const Given> command_line);

// The variables by which the workers learn of options, in the table's order.
std::vector<launcher::Variable> worker_variables(const Values&);

}  // namespace corro::cli
