#include "cli/subcommands.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "cli/host_options.h"
#include "cli/options.h"
#include "cli/refusal.h"

namespace kolo {

namespace {

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

// As few as there are, in any order.
Result<HostsWords> read_words(std::span<const std::string> words) {
  HostsWords out;
  for (; !words.empty(); words = words.subspan(1)) {
    const std::string& word = words.front();
    if (word == "-h" || word == "--help") {
      out.help = true;
    } else if (word.starts_with("--format=")) {
      out.format = word.substr(word.find('=') + 1);
    } else if (word == "--format") {
      if (words.size() == 1) return refuse("argument --format: expected one argument");
      words = words.subspan(1);
      out.format = words.front();
    } else if (word.starts_with('-') || !out.expression.empty()) {
      return refuse("unrecognized arguments: " + word);
    } else {
      out.expression = word;
    }
  }
  if (!format_of(out.format) && out.format != "json")
    return refuse(
        fmt::format("argument --format: invalid choice: {} (choose from 'horovod', "
                    "'openmpi', 'slurm', 'json')",
                    python_repr(out.format)));
  return out;
}

// Without an expression: what the scheduler gave.
Result<HostList> hosts_for(const std::string& expression, const Surroundings& around) {
  if (!expression.empty()) return parse_hosts({"HOSTS", expression}, around.read_file);
  std::vector<std::string> notes;
  auto allocation = ask_scheduler(around, notes);
  if (!allocation) return allocation.error();
  if (!*allocation)
    return refuse(fmt::format("no hosts were given, and {}",
                              notes.empty() ? "there is no scheduler to ask" : notes.front()));
  HostList list = std::move((*allocation)->list);
  list.notes.push_back(fmt::format("hosts from {}", (*allocation)->from));
  return list;
}

// What a notation has no place for, if some host has it.
std::optional<std::string> lost_in(HostFormat format, std::span<const HostSpec> hosts) {
  const auto some = [&](auto has) { return std::any_of(hosts.begin(), hosts.end(), has); };
  const bool addresses = some([](const HostSpec& host) { return !host.address.empty(); });
  const bool slots_or_users =
      some([](const HostSpec& host) { return host.slots > 0 || !host.user.empty(); });
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

std::vector<Subcommand> subcommands() {
  return {
      {"hosts", "hosts [EXPR] [--format horovod|openmpi|slurm|json]",
       "show hosts, in whichever way they are written, in another way"},
      {"doctor", "doctor [-H HOST:SLOTS,...] [options] [command ...]",
       "go to the hosts and say what is wrong there, with the command that mends it"},
  };
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

}  // namespace kolo
