#include "cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/table.h"

namespace corro::cli {

using launcher::Inspection;

namespace {

using launcher::doctor::Consultation;
using launcher::doctor::Finding;
using launcher::doctor::HostReport;
using launcher::doctor::Severity;
using Json = nlohmann::ordered_json;

constexpr auto kRed = "31", kYellow = "33", kGreen = "32";

std::string colored(std::string text, const char* color, bool with_color) {
  return with_color ? fmt::format("\x1b[{}m{}\x1b[0m", color, text) : text;
}

const char* color_of(Severity severity) {
  switch (severity) {
    case Severity::bad:
      return kRed;
    case Severity::warning:
      return kYellow;
    case Severity::note:
      break;
  }
  return kGreen;
}

// The worst that was found about a host.
std::optional<Severity> verdict_on(const std::string& host, const std::vector<Finding>& findings) {
  for (const Finding& finding : findings)  // the worst come first
    if (std::find(finding.hosts.begin(), finding.hosts.end(), host) != finding.hosts.end())
      return finding.severity;
  return std::nullopt;
}

std::string verdict_cell(const std::string& host, const Checkup& checkup, bool with_color) {
  const auto verdict = verdict_on(host, checkup.findings);
  if (!verdict || *verdict == Severity::note) return colored("ok", kGreen, with_color);
  return colored(std::string(name_of(*verdict)), color_of(*verdict), with_color);
}

double milliseconds(Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

std::string reached_cell(const HostReport& host) {
  if (!host.arrival) return "no";
  if (host.is_here) return "here";
  const auto& way = *host.arrival;
  return fmt::format("{:.0f} ms", milliseconds(way.resolve + way.connect + way.login + way.start));
}

std::string latency_cell(const HostReport& host) {
  return host.round_trip ? fmt::format("{:.1f} ms", milliseconds(*host.round_trip)) : "-";
}

// What is less than its uncertainty is not known to be there at all.
std::string clock_cell(const HostReport& host) {
  if (!host.clock) return "-";
  const auto ahead = std::chrono::abs(host.clock->ahead) > host.clock->uncertainty
                         ? host.clock->ahead
                         : std::chrono::microseconds(0);
  const double ms = milliseconds(ahead);
  if (ahead.count() == 0) return "same";
  return std::abs(ms) < 1000 ? fmt::format("{:+.0f} ms", ms) : fmt::format("{:+.1f} s", ms / 1000);
}

std::string memory_cell(const Inspection& seen) {
  return fmt::format("{:.1f} GiB", static_cast<double>(seen.memory_bytes) / (1 << 30));
}

std::string gpus_cell(const Inspection& seen) {
  if (seen.gpus.empty()) return "-";
  return fmt::format("{} {}", seen.gpus.size(), seen.gpus.front().name);
}

std::string torch_cell(const Inspection& seen) {
  for (const auto& package :
       seen.python ? seen.python->packages : std::vector<launcher::Installed>())
    if (package.name == "torch") return package.version;
  return "-";
}

std::string python_cell(const Inspection& seen) {
  return seen.python && !seen.python->version.empty() ? seen.python->version : "-";
}

std::vector<std::string> row_of(const HostReport& host, const Checkup& checkup, bool with_color) {
  const auto of = [&](const auto& cell) { return host.seen ? cell(*host.seen) : std::string("-"); };
  return {host.host,
          reached_cell(host),
          latency_cell(host),
          clock_cell(host),
          of([](const Inspection& seen) { return std::to_string(seen.cores); }),
          of(memory_cell),
          of(gpus_cell),
          of(python_cell),
          of(torch_cell),
          verdict_cell(host.host, checkup, with_color)};
}

std::string folded(const std::vector<std::string>& hosts) {
  std::vector<launcher::HostSpec> all;
  for (const std::string& host : hosts) all.push_back({.name = host});
  return print_hosts(all, launcher::HostFormat::slurm);
}

std::string finding_text(const Finding& finding, bool with_color) {
  std::string text = fmt::format(
      "{}: {} [{}]\n",
      colored(std::string(name_of(finding.severity)), color_of(finding.severity), with_color),
      headline(finding), name_of(finding.about));
  if (!finding.example.empty())
    text +=
        fmt::format("  {}{}\n", finding.hosts.size() > 1 ? "for example: " : "", finding.example);
  if (!finding.fix.empty()) text += fmt::format("  fix: {}\n", finding.fix);
  return text;
}

std::string summary(const Checkup& checkup) {
  const auto count = [&](Severity severity) {
    return std::count_if(checkup.findings.begin(), checkup.findings.end(),
                         [&](const Finding& finding) { return finding.severity == severity; });
  };
  const auto bad = count(Severity::bad), warnings = count(Severity::warning);
  if (bad == 0 && warnings == 0) return "Nothing stands in the way of a job.\n";
  std::string text =
      fmt::format("{} bad, {} {}.\n", bad, warnings, warnings == 1 ? "warning" : "warnings");
  if (bad > 0 && !checkup.remaining.empty())
    text += fmt::format("Without the bad ones: -H {}\n",
                        print_hosts(checkup.remaining, launcher::HostFormat::horovod));
  return text;
}

Json json_of(const launcher::Limit& limit) {
  const auto number = [](std::uint64_t n) {
    return n == launcher::Limit::kNone ? Json("unlimited") : Json(n);
  };
  return {{"soft", number(limit.soft)}, {"hard", number(limit.hard)}};
}

Json json_of(const launcher::Folder& folder) {
  return {{"path", folder.path},
          {"exists", folder.exists},
          {"can_enter", folder.can_enter},
          {"can_write", folder.can_write},
          {"free_bytes", folder.free_bytes},
          {"total_bytes", folder.total_bytes}};
}

Json json_of(const std::vector<launcher::Installed>& all) {
  Json out = Json::array();
  for (const launcher::Installed& each : all)
    out.push_back({{"name", each.name}, {"version", each.version}, {"where", each.where}});
  return out;
}

Json gpus_json(const Inspection& seen) {
  Json out = Json::array();
  for (const launcher::Gpu& gpu : seen.gpus)
    out.push_back({{"index", gpu.index},
                   {"name", gpu.name},
                   {"uuid", gpu.uuid},
                   {"memory_bytes", gpu.memory_bytes}});
  return out;
}

Json addresses_json(const Inspection& seen) {
  Json out = Json::array();
  for (const launcher::Nic& nic : seen.nics)
    out.push_back({{"interface", nic.name},
                   {"ip", nic.ip},
                   {"up", nic.up},
                   {"loopback", nic.loopback},
                   {"mbits", nic.speed_mbps}});
  return out;
}

Json json_of(const Inspection& seen) {
  Json out = {{"hostname", seen.hostname},
              {"kernel", seen.kernel},
              {"architecture", seen.architecture},
              {"cores", seen.cores},
              {"cpu", seen.cpu},
              {"memory_bytes", seen.memory_bytes},
              {"available_bytes", seen.available_bytes},
              {"gpus", gpus_json(seen)},
              {"driver", seen.driver},
              {"libraries", json_of(seen.libraries)},
              {"limits",
               {{"nofile", json_of(seen.nofile)},
                {"nproc", json_of(seen.nproc)},
                {"memlock", json_of(seen.memlock)}}},
              {"addresses", addresses_json(seen)}};
  out["folders"] = Json::array();
  if (seen.cwd) out["folders"].push_back(json_of(*seen.cwd));
  for (const launcher::Folder& folder : seen.scratch) out["folders"].push_back(json_of(folder));
  out["python"] = nullptr;
  if (seen.python)
    out["python"] = {{"path", seen.python->path},
                     {"version", seen.python->version},
                     {"packages", json_of(seen.python->packages)}};
  out["program"] = nullptr;
  if (seen.program)
    out["program"] = {{"path", seen.program->path}, {"can_run", seen.program->can_run}};
  out["script"] = nullptr;
  if (seen.script)
    out["script"] = {{"path", seen.script->path}, {"can_read", seen.script->can_read}};
  out["troubles"] = Json::array();
  for (const launcher::Trouble& trouble : seen.troubles) out["troubles"].push_back(trouble.text);
  return out;
}

Json json_of(const launcher::doctor::Arrival& arrival) {
  return {{"address", arrival.address},
          {"resolve_ms", milliseconds(arrival.resolve)},
          {"connect_ms", milliseconds(arrival.connect)},
          {"login_ms", milliseconds(arrival.login)},
          {"start_ms", milliseconds(arrival.start)},
          {"staged", arrival.staged},
          {"attempts", arrival.attempts},
          {"host_key", arrival.host_key}};
}

Json json_of(const HostReport& host, const Checkup& checkup) {
  const auto verdict = verdict_on(host.host, checkup.findings);
  Json out = {{"host", host.host},
              {"workers", host.workers},
              {"is_here", host.is_here},
              {"verdict", verdict ? Json(name_of(*verdict)) : Json("ok")},
              {"reached", nullptr},
              {"round_trip_ms", nullptr},
              {"clock_ahead_ms", nullptr},
              {"clock_uncertainty_ms", nullptr},
              {"seen", nullptr}};
  if (host.arrival) out["reached"] = json_of(*host.arrival);
  if (host.round_trip) out["round_trip_ms"] = milliseconds(*host.round_trip);
  if (host.clock) {
    out["clock_ahead_ms"] = milliseconds(host.clock->ahead);
    out["clock_uncertainty_ms"] = milliseconds(host.clock->uncertainty);
  }
  if (host.seen) out["seen"] = json_of(*host.seen);
  return out;
}

Json json_of(const Finding& finding) {
  return {{"severity", name_of(finding.severity)},
          {"class", name_of(finding.about)},
          {"exit_code", exit_code(finding.about)},
          {"hosts", finding.hosts},
          {"what", finding.what},
          {"example", finding.example},
          {"fix", finding.fix}};
}

}  // namespace

std::string headline(const Finding& finding) {
  return finding.hosts.empty() ? finding.what
                               : fmt::format("{}: {}", folded(finding.hosts), finding.what);
}

std::string doctor_text(const Checkup& checkup, bool with_color) {
  Table table({"host", "reached", "answers", "clock", "cores", "memory", "GPUs", "Python", "torch",
               "verdict"});
  for (const HostReport& host : checkup.consultation.hosts)
    table.add(row_of(host, checkup, with_color));
  std::string text = table.text() + "\n";
  for (const Finding& finding : checkup.findings) text += finding_text(finding, with_color);
  return text + (checkup.findings.empty() ? "" : "\n") + summary(checkup);
}

std::string doctor_json(const Checkup& checkup) {
  Json out;
  out["hosts"] = Json::array();
  for (const HostReport& host : checkup.consultation.hosts)
    out["hosts"].push_back(json_of(host, checkup));
  out["routes"] = Json::array();
  for (const launcher::doctor::Route& route : checkup.consultation.routes)
    out["routes"].push_back({{"from", route.from},
                             {"to", route.to},
                             {"ip", route.ip},
                             {"open", route.open},
                             {"why", route.why}});
  out["findings"] = Json::array();
  for (const Finding& finding : checkup.findings) out["findings"].push_back(json_of(finding));
  out["remaining"] = print_hosts(checkup.remaining, launcher::HostFormat::horovod);
  out["exit_code"] = exit_code(checkup.findings);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string progress_text(const launcher::ConsultProgress& progress) {
  return fmt::format("{} of {} hosts looked at, {} reached", progress.done, progress.hosts,
                     progress.reached);
}

}  // namespace corro::cli
