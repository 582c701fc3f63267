#include <fmt/format.h>

#include <map>

#include "launcher/doctor/agreement.h"
#include "launcher/doctor/ledger.h"

namespace corro::launcher::doctor {

namespace {

using Where = Remedy::Where;

// Two names of one machine: its cores, memory and GPUs would be counted twice.
void check_twins(const Consultation& consultation, Ledger& to) {
  std::map<std::string, std::vector<const HostReport*>> by_identity;
  for (const HostReport& host : consultation.hosts)
    if (host.seen && !host.seen->identity.empty())
      by_identity[host.seen->identity].push_back(&host);
  for (const auto& [identity, hosts] : by_identity) {
    if (hosts.size() < 2) continue;
    Finding finding{Severity::warning,
                    Class::machine,
                    {},
                    "they are one machine, so its cores, "
                    "memory and GPUs count more than once",
                    {},
                    {},
                    {}};
    int workers = 0;
    for (const HostReport* host : hosts) {
      finding.hosts.push_back(host->host);
      workers += host->workers;
    }
    finding.without.assign(finding.hosts.begin() + 1, finding.hosts.end());
    finding.fix = fmt::format("horovodrun -H {}:{} …", finding.hosts.front(), workers);
    to.add(std::move(finding));
  }
}

void check_alias(const Consultation& consultation, Ledger& to) {
  for (const HostReport& host : consultation.hosts)
    if (!host.is_here && host.seen && !consultation.here.empty() &&
        host.seen->identity == consultation.here)
      to.add(host, {Severity::note,
                    Class::machine,
                    "it is this machine, by another name",
                    {Where::here,
                     fmt::format("horovodrun -H localhost:{} …   # no ssh needed", host.workers)}});
}

}  // namespace

void check_machines(const Consultation& consultation, Ledger& to) {
  check_twins(consultation, to);
  check_alias(consultation, to);
  const Agreement architectures(consultation,
                                [](const Inspection& seen) { return seen.architecture; });
  for (const auto& [host, value] : architectures.odd_ones())
    to.add(*host, {Severity::bad,
                   Class::machine,
                   fmt::format("it is {}, elsewhere it is {}", value, architectures.usual()),
                   {Where::here, "horovodrun --exclude %h …   # it needs programs of its own"}});
  for (const HostReport& host : consultation.hosts)
    for (const Trouble& trouble : host.seen ? host.seen->troubles : std::vector<Trouble>())
      if (trouble.about == Trouble::About::all)
        to.add(host, {Severity::bad,
                      Class::machine,
                      "it could not be looked at",
                      {Where::there, "uptime; dmesg | tail"},
                      trouble.text});
}

}  // namespace corro::launcher::doctor
