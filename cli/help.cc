#include "cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/options.h"
#include "cli/subcommands.h"

namespace corro::cli {

namespace {

constexpr int kHelpColumn = 26;

// Words from `text`, in lines of `width` columns that begin at `column`.
std::string wrapped(std::string_view text, int column, int width) {
  std::string out;
  int used = 0;
  for (const auto word : split(text, ' ')) {
    const int length = static_cast<int>(word.size());
    if (used > 0 && column + used + 1 + length > width) {
      out += fmt::format("\n{:{}}", "", column);
      used = 0;
    }
    out += fmt::format("{}{}", used ? " " : "", word);
    used += length + (used ? 1 : 0);
  }
  return out;
}

std::string value_text(const Option& option) {
  std::string text;
  if (!option.takes_value()) return text;
  const auto value =
      option.choices.empty() ? std::string(option.value) : std::string(option.choices);
  for (int i = 0; i < option.arity; ++i) text += " " + value;
  return text;
}

std::string names_text(const Option& option) {
  return fmt::format("{}{}", fmt::join(names_of(option), ", "), value_text(option));
}

std::string help_of(const Option& option) {
  const auto mark = option.state == State::later             ? " [not available yet]"
                    : option.state == State::reaches_workers ? " [only passed on yet]"
                                                             : "";
  return fmt::format("{}{}", option.help, mark);
}

std::string entry(std::string_view names, std::string_view help, int width) {
  const bool fits = static_cast<int>(names.size()) + 2 + 2 <= kHelpColumn;
  const auto gap = fits ? std::string(kHelpColumn - 2 - names.size(), ' ')
                        : fmt::format("\n{:{}}", "", kHelpColumn);
  return fmt::format("  {}{}{}\n", names, gap, wrapped(help, kHelpColumn, width));
}

template <class Fn>
void for_shown(Group group, Fn fn) {
  for (const Option& option : options())
    if (option.group == group && !option.hidden) fn(option);
}

template <class Fn>
void for_groups(Fn fn) {
  for (int i = 0; i <= static_cast<int>(last_of(Group{})); ++i) fn(static_cast<Group>(i));
}

}  // namespace

std::string usage_text(std::span<const std::string> words) {
  if (const Subcommand* asked = subcommand_of(words))
    return fmt::format("usage: horovodrun {}\n       horovodrun --help lists the options\n",
                       asked->usage());
  return "usage: horovodrun [-h] [-v] -np NUM_PROC [-H HOST:SLOTS,... | -hostfile FILE] [options] "
         "command ...\n       horovodrun --help lists the options\n";
}

std::string help_text(int width) {
  std::string text =
      "usage: horovodrun -np NUM_PROC [-H HOST:SLOTS,... | -hostfile FILE] [options] command ...\n";
  for (const Subcommand& each : subcommands())
    text += fmt::format("       horovodrun {}\n", each.usage());
  text += "\n" +
          wrapped(
              "Starts NUM_PROC workers of a command on one or more hosts, watches them and "
              "ends them together. From the first word that is no option on, everything "
              "belongs to the command.",
              0, width) +
          "\n";
  for_groups([&](Group group) {
    text += fmt::format("\n{}:\n", title_of(group));
    for_shown(group, [&](const Option& option) {
      text += entry(names_text(option), help_of(option), width);
    });
  });
  text += "\nsubcommands, as the first word only:\n";
  for (const Subcommand& each : subcommands())
    text += entry(each.name, std::string(each.help), width);
  text += "\nexit status: that of the first worker that failed (128+n for signal n), or\n";
  for (const ExitCode& each : exit_codes()) text += entry(each.codes, each.what, width);
  text +=
      "\nexamples:\n"
      "  horovodrun -np 4 python train.py\n"
      "  horovodrun -np 16 -H server1:4,server2:4,server3:4,server4:4 python train.py\n"
      "  horovodrun -np 8 -hostfile hosts.txt --dry-run python train.py\n"
      "  horovodrun doctor -H server1:4,server2:4 python train.py\n";
  return text;
}

}  // namespace corro::cli
