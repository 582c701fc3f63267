#include "launcher/doctor/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"

namespace corro::launcher::doctor {

namespace {

std::string login_of(const HostReport& host) {
  return host.user.empty() ? host.host : host.user + "@" + host.host;
}

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// Not every command gives what it is told to a shell.
std::string by_rsh(const std::string& rsh, const std::string& host, const std::string& command) {
  return fmt::format("echo {} | {} sh", shell_word(command), replaced(rsh, "{host}", host));
}

bool is_equal(const Symptom& a, const Symptom& b) {
  return std::tie(a.severity, a.about, a.what, a.remedy) ==
         std::tie(b.severity, b.about, b.what, b.remedy);
}

}  // namespace

void Ledger::add(const HostReport& host, Symptom symptom) {
  const auto same = std::find_if(groups_.begin(), groups_.end(),
                                 [&](const Group& g) { return is_equal(g.symptom, symptom); });
  if (same == groups_.end())
    groups_.push_back({std::move(symptom), {&host}});
  else
    same->hosts.push_back(&host);
}

void Ledger::add(Finding finding) {
  whole_.push_back(std::move(finding));
}

// This machine needs no ssh, and may be one of many.
std::string Ledger::command(const Remedy& remedy,
                            const std::vector<const HostReport*>& hosts) const {
  if (remedy.where == Remedy::Where::here && remedy.command.find("%h") == std::string::npos)
    return remedy.command;
  std::vector<std::string> names;
  std::string out;
  for (const HostReport* host : hosts)
    if (remedy.where == Remedy::Where::there && host->is_here)
      out = remedy.command;
    else
      names.push_back(login_of(*host));
  if (names.empty()) return out;
  const bool one = names.size() == 1;
  const std::string each = one ? names.front() : "$h";
  std::string command = remedy.where == Remedy::Where::here ? replaced(remedy.command, "%h", each)
                        : about_.rsh.empty()
                            ? fmt::format("{} {} {}", about_.ssh, each, shell_word(remedy.command))
                            : by_rsh(about_.rsh, each, remedy.command);
  if (!one) {
    std::string list;
    for (const std::string& name : names) list += " " + name;
    command = fmt::format("for h in{}; do {}; done", list, command);
  }
  return out.empty() ? command : out + "; " + command;
}

Finding Ledger::finding_of(const Group& group) const {
  const Symptom& symptom = group.symptom;
  Finding out{symptom.severity, symptom.about, {}, symptom.what, symptom.example, {}, {}};
  for (const HostReport* host : group.hosts) out.hosts.push_back(host->host);
  out.without = out.hosts;
  const bool alone = group.hosts.size() == 1 && !symptom.exact_fix.empty();
  out.fix = alone ? symptom.exact_fix : command(symptom.remedy, group.hosts);
  return out;
}

std::vector<Finding> Ledger::findings() const {
  std::vector<Finding> out;
  for (const Group& group : groups_) out.push_back(finding_of(group));
  out.insert(out.end(), whole_.begin(), whole_.end());
  std::stable_sort(out.begin(), out.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.severity, a.about) < std::tie(b.severity, b.about);
  });
  return out;
}

}  // namespace corro::launcher::doctor
