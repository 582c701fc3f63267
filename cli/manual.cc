#include "cli/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/options.h"

namespace corro::cli {

namespace {

// mdoc takes "-" for a hyphen and "\" for an escape.
std::string mdoc(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  return out;
}

// A line of an example, which somebody will copy: no typographic dashes, quotes and accents.
std::string to_copy(std::string_view line) {
  static const std::map<char, std::string_view> kPlain = {
      {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  std::string out;
  for (const char c : line)
    if (const auto plain = kPlain.find(c); plain != kPlain.end())
      out += plain->second;
    else
      out += c;
  return out;
}

std::string capitalized(std::string_view text) {
  std::string out(text);
  out.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(out.front())));
  return out;
}

// A sentence about an option.  A word that is not made of letters alone may be something to type,
// and is not hyphenated.
std::string sentence(std::string_view help) {
  std::string out;
  const std::string text = capitalized(help);
  for (const auto word : split(text, ' ')) {
    const bool is_plain =
        std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalpha(c); });
    out += fmt::format("{}{}{}", out.empty() ? "" : " ", is_plain ? "" : "\\%", mdoc(word));
  }
  return out + ".\n";
}

std::string value_of(const Option& option) {
  std::string out;
  const auto value = option.choices.empty() ? option.value : option.choices;
  if (option.takes_value())
    for (int i = 0; i < option.arity; ++i) out += fmt::format(" Ar {}", mdoc(value));
  return out;
}

std::string_view name_of(State state) {
  switch (state) {
    case State::works:
      return "works";
    case State::reaches_workers:
      return "reaches_workers";
    case State::later:
      return "later";
  }
  return {};
}

std::string item_for(const Option& option) {
  std::string names;
  for (const auto name : names_of(option))
    names += fmt::format("{}Fl {}", names.empty() ? "" : " , ", mdoc(name.substr(1)));
  return fmt::format(".It {}{}\n", names, value_of(option));
}

std::string text_for(const Option& option) {
  std::string out = sentence(option.help);
  const auto value = option.sets.empty() ? "" : fmt::format("to {} ", option.sets);
  const auto unit = option.scale == 1 << 20 ? ", in bytes" : "";
  if (!option.variable.empty())
    out += fmt::format("Sets\n.Ev {}\n{}for the workers{}.\n", option.variable, value, unit);
  if (!option.needs.empty())
    out += fmt::format("Counts only together with\n.Fl {} .\n", mdoc(option.needs.substr(1)));
  if (!option.fallback.empty())
    out += fmt::format("Without it, the variable\n.Ev {}\ncounts.\n", option.fallback);
  if (!option.key.empty()) out += fmt::format("In the configuration file:\n.Li {} .\n", option.key);
  if (option.state == State::later) out += "Not available yet.\n";
  if (option.state == State::reaches_workers) out += "Corro does not act on it yet.\n";
  return out;
}

std::string options_section() {
  std::string out;
  for (int i = 0; i <= static_cast<int>(last_of(Group{})); ++i) {
    const auto group = static_cast<Group>(i);
    if (group != Group::general) out += fmt::format(".Ss {}\n", capitalized(title_of(group)));
    out += ".Bl -tag -width Ds\n";
    for (const Option& option : options())
      if (option.group == group && !option.hidden) out += item_for(option) + text_for(option);
    out += ".El\n";
  }
  return out;
}

// What a key of the configuration file means, by the option that it stands for.
std::string meaning_of_key(const Option& option) {
  const auto name = mdoc(option.name().substr(1));
  if (option.takes_value()) return fmt::format("As\n.Fl {} .\n", name);
  if (option.key == "controller")
    return ".Ql gloo\nor\n.Ql mpi ,\nas the options of these names.\n";
  return fmt::format(".Ql {}\nis\n.Fl {} .\n", option.key_means, name);
}

std::string keys_section() {
  std::map<std::string_view, std::string> items;
  for (const Option& option : options())
    if (!option.key.empty() && !option.hidden)
      items.try_emplace(option.key, meaning_of_key(option));
  std::string out = ".Bl -tag -width Ds\n";
  for (const auto& [key, means] : items) out += fmt::format(".It Li {}\n{}", key, means);
  return out + ".El\n";
}

std::string exit_codes_section() {
  std::string out = ".Bl -tag -width Ds\n";
  for (const ExitCode& each : exit_codes())
    out += fmt::format(".It {}\n{}", each.codes, sentence(each.what));
  return out + ".El\n";
}

// "--include", "-x", ... as a list in a sentence.
std::string repeatable_names() {
  std::vector<std::string> names;
  for (const Option& option : options())
    if (option.repeatable && !option.hidden)
      names.push_back(".Fl " + mdoc(names_of(option).front().substr(1)));
  const std::string last = std::move(names.back());
  names.pop_back();
  return fmt::format("{}\nand\n{}\n", fmt::join(names, " ,\n"), last);
}

const std::map<std::string_view, std::string (*)()> kFilledIn = {
    {"@OPTIONS@", options_section},
    {"@KEYS@", keys_section},
    {"@EXIT_CODES@", exit_codes_section},
    {"@REPEATABLE@", repeatable_names}};

constexpr std::string_view kExampleLine = ".Dl ";

}  // namespace

std::string manual_page(std::string_view page) {
  std::string out;
  bool literal = false;
  for (const auto line : split(page, '\n')) {
    if (line.starts_with(".Ed")) literal = false;
    if (const auto found = kFilledIn.find(line); found != kFilledIn.end())
      out += found->second();
    else if (line.starts_with(kExampleLine))
      out += fmt::format("{}{}\n", kExampleLine, to_copy(line.substr(kExampleLine.size())));
    else
      (out += literal ? to_copy(line) : line) += '\n';
    if (line.starts_with(".Bd -literal")) literal = true;
  }
  out.pop_back();  // the page ends with a newline already
  return out;
}

std::string table_json() {
  auto table = nlohmann::ordered_json::array();
  for (const Option& option : options())
    table.push_back({{"names", names_of(option)},
                     {"value", option.value},
                     {"kind", static_cast<int>(option.kind)},
                     {"takes", option.takes_value() ? option.arity : 0},
                     {"least", option.limits.least},
                     {"most", option.limits.most},
                     {"choices", choices_of(option)},
                     {"exclusive", option.exclusive},
                     {"state", name_of(option.state)},
                     {"hidden", option.hidden},
                     {"repeatable", option.repeatable},
                     {"ours", option.ours},
                     {"variable", option.variable},
                     {"key", option.key}});
  return table.dump(1) + "\n";
}

}  // namespace corro::cli
