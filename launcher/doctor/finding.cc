#include "launcher/doctor/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace corro::launcher::doctor {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::bad:
      return "bad";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return {};
}

std::string_view name_of(Class about) {
  constexpr std::string_view kNames[] = {"name",    "reach",   "host key", "login",
                                         "machine", "network", "limits",   "versions",
                                         "files",   "GPUs",    "clock"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(last_of(Class{})) + 1);
  return kNames[static_cast<std::size_t>(about)];
}

int exit_code(std::span<const Finding> findings) {
  const auto bad = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::bad;
  });
  return bad == findings.end() ? 0 : exit_code(bad->about);
}

Result<std::vector<HostSpec>> exclude_bad(std::vector<HostSpec> hosts,
                                          std::span<const Finding> findings, int np) {
  std::set<std::string> without;
  for (const Finding& finding : findings)
    if (finding.severity == Severity::bad)
      without.insert(finding.without.begin(), finding.without.end());
  const int before = total_slots(hosts);
  std::erase_if(hosts, [&](const HostSpec& host) { return without.contains(host.name); });
  const int left = total_slots(hosts);
  if (left < np)
    return Error(Errc::invalid_input,
                 fmt::format("without the hosts that are bad {} of {} slots remain, and {} workers "
                             "are wanted",
                             left, before, np));
  return hosts;
}

}  // namespace corro::launcher::doctor
