#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace corro::cli {

// What the value of an option is.  The completions offer what fits.
enum class Kind {
  nothing,
  integer,
  number,
  text,
  choice,
  cores,
  file,
  folder,
  program,
  hosts,
  interfaces
};

// The headings under which --help and the man page list the options.
enum class Group {
  general,
  hosts,
  workers,
  output,
  checks,
  ssh,
  elastic,
  tuning,
  autotune,
  timeline,
  stall,
  library,
  logging,
  controller,
};
constexpr Group last_of(Group) {
  return Group::controller;
}
std::string_view title_of(Group);

// How far an option is carried out.
enum class State {
  works,
  reaches_workers,  // its variable does, and nothing of ours reads it yet
  later,            // it is checked, and has no effect yet
};

struct Limits {
  double least = -1e18, most = 1e18;
  constexpr bool operator==(const Limits&) const = default;
};

// One option of the command line.  The table of them is what the parser, --help, the man page, the
// completions and the configuration file are made from.
struct Option {
  std::string_view names;  // as argparse lists them: "-np/--num-proc"
  std::string_view value;  // what its value is called; empty: it takes none
  Kind kind = Kind::nothing;
  Group group = Group::general;
  std::string_view help;
  State state = State::works;
  bool hidden = false;      // still understood, no longer advertised
  bool repeatable = false;  // every mention counts, not only the last
  bool ours = false;        // Horovod has no such option
  int arity = 1;            // how many values, if it takes any
  Limits limits{};
  std::string_view choices;    // "a|b|c"
  std::string_view exclusive;  // only one of those with the same word may be given
  std::string_view variable;   // what the workers find it in
  std::string_view sets;       // to what a flag sets the variable
  std::int64_t scale = 1;      // the variable's unit in the option's
  std::string_view needs;      // the variable is set only along with this option
  std::string_view key;        // in the configuration file: "params.cycle_time_ms"
  bool key_means = true;       // a flag is given by the key being this
  std::string_view fallback;   // the launcher's own variable that says it when no one else does

  // The first of its long names, by which it is known once it has been understood.
  std::string_view name() const;
  bool takes_value() const { return kind != Kind::nothing; }
};

std::span<const Option> options();

// By one of its whole names; null: there is none.
const Option* find_option(std::string_view name);

// By the name that Option::name() gives; there must be one.
const Option& option(std::string_view name);

std::vector<std::string_view> names_of(const Option&);

// Every name of every option, in the table's order.
struct OptionName {
  std::string_view name;
  const Option* option;
};
std::span<const OptionName> option_names();

std::vector<std::string_view> choices_of(const Option&);

// What the user writes for a value of an enumeration that lists an option's choices in their order.
template <class Enum>
std::string_view choice_for(const Option& option, Enum value) {
  return choices_of(option)[static_cast<std::size_t>(value)];
}

// Whether the values can be what the option takes; if not, argparse's words, or like words where it
// has none: "argument -np/--num-proc: invalid int value: 'x'".
std::optional<std::string> complaint_about(const Option&, std::span<const std::string> values);

// As Python would show it in a message.
std::string python_repr(std::string_view);

// As Python's int() and float() read them, blanks and underscores included.
std::optional<std::int64_t> python_int(std::string_view);
std::optional<double> python_float(std::string_view);

}  // namespace corro::cli
