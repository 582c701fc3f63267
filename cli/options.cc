#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

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

Result<const Option*> find(std::string_view name) {
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
    return Error(Errc::invalid_input, fmt::format("ambiguous option: {} could match {}", name,
                                                  fmt::join(matches, ", ")));
  return Error(Errc::invalid_input, fmt::format("unrecognized arguments: {}", name));
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
    const auto option = find(word.substr(0, equals));
    if (!option) return option.error();

    std::string canonical((*option)->name);
    const bool takes_value = !(*option)->value.empty();
    if (takes_value && equals == word.npos) {
      if (arguments.empty() || is_option(arguments.front()))
        return Error(Errc::invalid_input,
                     fmt::format("argument {}: expected one argument", both_names(**option)));
      canonical += "=" + arguments.front();
      arguments = arguments.subspan(1);
    } else if (takes_value) {
      canonical += word.substr(equals);
    } else if (equals != word.npos) {
      return Error(Errc::invalid_input, fmt::format("argument {}: ignored explicit argument '{}'",
                                                    both_names(**option), word.substr(equals + 1)));
    }
    out.options.push_back(std::move(canonical));
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
