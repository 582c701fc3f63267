#include "cli/subcommands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/host_options.h"

namespace kolo {

namespace {

struct HostsWords {
  std::string expression, format = "horovod";
  bool help = false;
};

Result<HostsWords> read_words(std::vector<std::string> words) try {
  HostsWords out;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", out.help);
  app.add_option("EXPR", out.expression);
  app.add_option("--format", out.format)
      ->check(CLI::IsMember({"horovod", "openmpi", "slurm", "json"}));
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  app.parse(words);
  return out;
} catch (const CLI::Error& e) {
  return Error(Errc::invalid_input, e.what());
}

std::optional<HostFormat> format_of(const std::string& name) {
  if (name == "horovod") return HostFormat::horovod;
  if (name == "openmpi") return HostFormat::openmpi;
  if (name == "slurm") return HostFormat::slurm;
  return std::nullopt;
}

// Without an expression: what the scheduler gave.
Result<HostList> hosts_for(const std::string& expression, const Surroundings& around) {
  if (!expression.empty()) return parse_hosts({"HOSTS", expression}, around.read_file);
  auto allocation = ask_scheduler(around);
  if (!allocation) return allocation.error();
  if (!*allocation)
    return Error(Errc::invalid_input, "no hosts were given, and there is no scheduler to ask");
  return std::move((*allocation)->list);
}

Result<Request> parse_hosts_words(const std::vector<std::string>& words,
                                  const Surroundings& around) {
  const auto read = read_words({words.begin() + 1, words.end()});
  if (!read) return read.error();
  if (read->help) return Request(ShowHelp{});
  auto list = hosts_for(read->expression, around);
  if (!list) return list.error();
  return Request(
      ShowHosts{std::move(list->hosts), format_of(read->format), std::move(list->notes)});
}

}  // namespace

std::vector<Subcommand> subcommands() {
  return {
      {"hosts", "hosts [EXPR] [--format horovod|openmpi|slurm|json]",
       "show hosts, in whichever way they are written, in another way"},
      {"doctor", "doctor", "check hosts and what is installed there", false},
  };
}

std::optional<Result<Request>> parse_subcommand(const std::vector<std::string>& words,
                                                const Surroundings& around) {
  if (words.empty()) return std::nullopt;
  if (words.front() == "hosts") return parse_hosts_words(words, around);
  for (const Subcommand& each : subcommands())
    if (each.name == words.front())
      return Result<Request>(
          Error(Errc::unsupported, fmt::format("'horovodrun {}' is not available yet", each.name)));
  return std::nullopt;
}

}  // namespace kolo
