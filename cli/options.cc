#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>

namespace kolo {

namespace {

constexpr auto kOptions = std::to_array<Option>({
    {"--help", "-h", "", "show this text and end"},
    {"--version", "-v", "", "show the version and end"},
    {"--num-proc", "-np", "N", "how many workers to start"},
    {"--hosts", "-H", "HOST:SLOTS,...",
     "where to start them, and how many on each host at the most "
     "(default: localhost, with N slots)"},
    {"--grace", "", "SECONDS",
     "how long workers may take to end after SIGTERM, before SIGKILL "
     "(default: 5)"},
    {"--verbose", "", "", "say what is going on"},
});

// "-np/--num-proc", as argparse names an option in its messages.
std::string both_names(const Option& option) {
  return option.brief.empty() ? std::string(option.name)
                              : fmt::format("{}/{}", option.brief, option.name);
}

// `word` is the name and what comes with it, as argparse quotes it.
Result<const Option*> find(std::string_view name, std::string_view word) {
  for (const Option& option : kOptions)
    if (option.name == name || option.brief == name) return &option;
  std::vector<std::string_view> matches;
  const Option* match = nullptr;
  for (const Option& option : kOptions)
    if (name.starts_with("--") && name.size() > 2 && option.name.starts_with(name)) {
      matches.push_back(option.name);
      match = &option;
    }
  if (matches.size() == 1) return match;
  if (matches.size() > 1)
    return Error(Errc::invalid_input, fmt::format("ambiguous option: {} could match {}", word,
                                                  fmt::join(matches, ", ")));
  return Error(Errc::invalid_input, fmt::format("unrecognized arguments: {}", word));
}

bool is_option(std::string_view word) {
  return word.size() > 1 && word.starts_with('-');
}

}  // namespace

std::span<const Option> options() {
  return kOptions;
}

Result<Cut> cut(std::span<const std::string> arguments) {
  Cut out;
  while (!arguments.empty() && is_option(arguments.front())) {
    const std::string_view word = arguments.front();
    arguments = arguments.subspan(1);
    const auto equals = word.find('=');
    const auto option = find(word.substr(0, equals), word);
    if (!option) return option.error();

    std::optional<std::string> value;
    if (equals != word.npos) value = word.substr(equals + 1);
    const bool takes_value = !(*option)->value.empty();
    if (!takes_value && value)
      return Error(Errc::invalid_input, fmt::format("argument {}: ignored explicit argument '{}'",
                                                    both_names(**option), *value));
    if (takes_value && !value && !arguments.empty() && !is_option(arguments.front())) {
      value = arguments.front();
      arguments = arguments.subspan(1);
    }
    // None of them means anything when it is empty, as from a variable that was not set.
    if (takes_value && (!value || value->empty()))
      return Error(Errc::invalid_input,
                   fmt::format("argument {}: expected one argument", both_names(**option)));
    out.options.push_back(value ? fmt::format("{}={}", (*option)->name, *value)
                                : std::string((*option)->name));
  }
  out.command.assign(arguments.begin(), arguments.end());
  return out;
}

std::string usage_text() {
  std::string text = "usage: horovodrun";
  for (const Option& option : kOptions) {
    const auto name = option.brief.empty() ? option.name : option.brief;
    text += fmt::format(" [{}{}{}]", name, option.value.empty() ? "" : " ", option.value);
  }
  return text + " command ...\n";
}

std::string help_text() {
  std::string text = usage_text() +
                     "\nStarts N workers of a command on one or more hosts, watches them and ends "
                     "them together.\n\noptions:\n";
  for (const Option& option : kOptions) {
    std::string names = option.brief.empty() ? "" : std::string(option.brief) + ", ";
    names += option.name;
    if (!option.value.empty()) names += fmt::format(" {}", option.value);
    text += fmt::format("  {:<34} {}\n", names, option.help);
  }
  text +=
      "\nexit status:\n"
      "  0 if all workers ended with 0; else that of the first one that failed (128+n for signal "
      "n).\n"
      "  2 bad usage, 121 a host was lost, 124 a host did not answer, 126 or 127 the command\n"
      "  cannot be run, 130 and 143 ended by SIGINT and SIGTERM.\n"
      "\nexample:\n"
      "  horovodrun -np 4 -H localhost:4 python train.py\n";
  return text;
}

}  // namespace kolo
