#include "cli/parse.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "cli/options.h"

namespace kolo {

namespace {

struct Raw {
  bool help = false, version = false, verbose = false;
  std::string np, hosts, grace;  // empty: not given
};

// CLI11 gets canonical names only: it refuses `-np` and knows no abbreviations.
Result<Raw> read_options(std::vector<std::string> canonical) try {
  Raw raw;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("--help", raw.help);
  app.add_flag("--version", raw.version);
  app.add_flag("--verbose", raw.verbose);
  const auto last = CLI::MultiOptionPolicy::TakeLast;
  app.add_option("--num-proc", raw.np)->multi_option_policy(last);
  app.add_option("--hosts", raw.hosts)->multi_option_policy(last);
  app.add_option("--grace", raw.grace)->multi_option_policy(last);
  std::reverse(canonical.begin(), canonical.end());  // as CLI11 wants them
  app.parse(canonical);
  return raw;
} catch (const CLI::Error& e) {
  return Error(Errc::invalid_input, e.what());
}

Error bad(std::string text) {
  return Error(Errc::invalid_input, std::move(text));
}

Result<int> parse_np(const std::string& text) {
  if (text.empty()) return bad("the following arguments are required: -np/--num-proc");
  const auto np = parse_int(text);
  if (!np) return bad(fmt::format("argument -np/--num-proc: invalid int value: '{}'", text));
  if (*np < 1 || *np > kSlotsLimit)
    return bad(
        fmt::format("argument -np/--num-proc: must be from 1 to {}, not {}", kSlotsLimit, *np));
  return static_cast<int>(*np);
}

Result<Duration> parse_grace(const std::string& text) {
  constexpr double kLongest = 24 * 3600;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0))
    return bad(fmt::format("argument --grace: invalid number of seconds: '{}'", text));
  if (seconds > kLongest)
    return bad(fmt::format("argument --grace: {} s is longer than a day", text));
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

Result<JobSpec> to_spec(const Raw& raw, std::vector<std::string> command) {
  JobSpec spec;
  const auto np = parse_np(raw.np);
  if (!np) return np.error();
  spec.np = *np;
  auto hosts =
      raw.hosts.empty() ? std::vector<HostSpec>{{"localhost", *np}} : parse_hosts(raw.hosts);
  if (!hosts) return std::move(hosts.error()).during("argument -H/--hosts");
  spec.hosts = std::move(*hosts);
  if (!raw.grace.empty()) {
    const auto grace = parse_grace(raw.grace);
    if (!grace) return grace.error();
    spec.grace = *grace;
  }
  if (command.empty()) return bad("no command to run was given");
  spec.command = std::move(command);
  return spec;
}

}  // namespace

Result<Request> parse_command_line(const std::vector<std::string>& arguments) {
  auto parts = cut(arguments);
  if (!parts) return parts.error();
  const auto raw = read_options(std::move(parts->options));
  if (!raw) return raw.error();
  if (raw->help) return Request(ShowHelp{});
  if (raw->version) return Request(ShowVersion{});
  auto spec = to_spec(*raw, std::move(parts->command));
  if (!spec) return spec.error();
  return Request(RunJob{std::move(*spec), raw->verbose});
}

}  // namespace kolo
