#include "cli/subcommands.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "cli/host_options.h"
#include "cli/options.h"
#include "cli/refusal.h"

namespace corro::cli {

using launcher::HostFormat;

namespace {

constexpr Option kHostsOptions[] = {
    {.names = "-h/--help", .value = "", .help = "show all that horovodrun understands"},
    {.names = "--format",
     .value = "FORMAT",
     .kind = Kind::choice,
     .help = "the notation to print them in",
     .choices = "horovod|openmpi|slurm|json"},
};

constexpr Subcommand kSubcommands[] = {
    {"hosts", "[EXPR]", "show hosts, in whichever way they are written, in another way",
     kHostsOptions},
    {"doctor",
     "[-H HOST:SLOTS,...] [options] [command ...]",
     "go to the hosts and say what is wrong there, with the command that mends it",
     {}},
};

struct HostsWords {
  std::string expression, format = "horovod";
  bool help = false;
};

std::optional<HostFormat> format_of(const std::string& name) {
  if (name == "horovod") return HostFormat::horovod;
  if (name == "openmpi") return HostFormat::openmpi;
  if (name == "slurm") return HostFormat::slurm;
  return std::nullopt;
}

// By a name, or the beginning of a long one; they are too few to be ambiguous.
const Option* option_like(std::string_view word) {
  for (const Option& option : kHostsOptions)
    for (const auto name : names_of(option))
      if (name == word || (word.size() > 2 && name.starts_with(word))) return &option;
  return nullptr;
}

// In any order, since no command follows.
Result<HostsWords> read_words(std::span<const std::string> words) {
  HostsWords out;
  for (; !words.empty(); words = words.subspan(1)) {
    const std::string& word = words.front();
    const auto equals = word.find('=');
    const Option* option = word.starts_with('-') ? option_like(word.substr(0, equals)) : nullptr;
    if (!option && (word.starts_with('-') || !out.expression.empty()))
      return refuse("unrecognized arguments: " + word);
    if (!option) {
      out.expression = word;
    } else if (!option->takes_value()) {
      out.help = true;
    } else {
      if (equals == word.npos && words.size() == 1) return refuse(*option, "expected one argument");
      if (equals == word.npos) words = words.subspan(1);
      out.format = equals == word.npos ? words.front() : word.substr(equals + 1);
      if (auto complaint = complaint_about(*option, std::span(&out.format, 1)))
        return refuse(*complaint);
    }
  }
  return out;
}

// Without an expression: what the scheduler gave.
Result<launcher::HostList> hosts_for(const std::string& expression, const Surroundings& around) {
  if (!expression.empty()) return launcher::parse_hosts({"HOSTS", expression}, around.read_file);
  std::vector<std::string> notes;
  auto allocation = ask_scheduler(around, notes);
  if (!allocation) return allocation.error();
  if (!*allocation)
    return refuse(fmt::format("no hosts were given, and {}",
                              notes.empty() ? "there is no scheduler to ask" : notes.front()));
  launcher::HostList list = std::move((*allocation)->list);
  list.notes.push_back(fmt::format("hosts from {}", (*allocation)->from));
  return list;
}

// What a notation has no place for, if some host has it.
std::optional<std::string> lost_in(HostFormat format, std::span<const launcher::HostSpec> hosts) {
  const auto some = [&](auto has) { return std::any_of(hosts.begin(), hosts.end(), has); };
  const bool addresses = some([](const launcher::HostSpec& host) { return !host.address.empty(); });
  const bool slots_or_users =
      some([](const launcher::HostSpec& host) { return host.slots > 0 || !host.user.empty(); });
  if (format == HostFormat::openmpi && addresses)
    return "a host file of Open MPI has no place for addresses of their own";
  if (format == HostFormat::slurm && addresses)
    return "a node list of Slurm has no place for slots, users and addresses of their own";
  if (format == HostFormat::slurm && slots_or_users)
    return "a node list of Slurm has no place for slots and users";
  return std::nullopt;
}

Result<Request> parse_hosts_words(const std::vector<std::string>& words,
                                  const Surroundings& around) {
  const auto read = read_words(std::span(words).subspan(1));
  if (!read) return read.error();
  if (read->help) return Request(ShowHelp{});
  auto list = hosts_for(read->expression, around);
  if (!list) return list.error();
  const auto format = format_of(read->format);
  if (const auto lost = format ? lost_in(*format, list->hosts) : std::nullopt)
    list->notes.push_back(*lost);
  return Request(ShowHosts{std::move(list->hosts), format, std::move(list->notes)});
}

}  // namespace

std::string Subcommand::usage() const {
  std::string out = fmt::format("{} {}", name, arguments);
  for (const Option& option : options)
    if (option.takes_value()) out += fmt::format(" [{} {}]", option.name(), option.choices);
  return out;
}

std::span<const Subcommand> subcommands() {
  return kSubcommands;
}

const Subcommand* subcommand_of(std::span<const std::string> words) {
  for (const Subcommand& each : kSubcommands)
    if (!words.empty() && each.name == words.front()) return &each;
  return nullptr;
}

bool asks_for_doctor(std::span<const std::string> words) {
  return !words.empty() && words.front() == "doctor";
}

std::optional<Result<Request>> parse_subcommand(const std::vector<std::string>& words,
                                                const Surroundings& around) {
  if (words.empty()) return std::nullopt;
  if (words.front() == "hosts") return parse_hosts_words(words, around);
  return std::nullopt;
}

}  // namespace corro::cli
