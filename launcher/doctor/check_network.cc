#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "launcher/doctor/ledger.h"

namespace corro::launcher::doctor {

namespace {

using Where = Remedy::Where;
using Pair = std::pair<std::string, std::string>;  // from, to

constexpr int kFirstAdvised = 20000, kLastAdvised = 20999;

// What was tried between two hosts.
struct Way {
  std::vector<std::string> open, closed;  // addresses
  std::string why;
};

std::map<Pair, Way> ways_of(const Consultation& consultation) {
  std::map<Pair, Way> out;
  for (const Route& route : consultation.routes) {
    Way& way = out[{route.from, route.to}];
    (route.open ? way.open : way.closed).push_back(route.ip);
    if (!route.open) way.why = route.why;
  }
  return out;
}

const HostReport* find(const Consultation& consultation, const std::string& host) {
  const auto found = std::find_if(consultation.hosts.begin(), consultation.hosts.end(),
                                  [&](const HostReport& h) { return h.host == host; });
  return found == consultation.hosts.end() ? nullptr : &*found;
}

// By which it is probably seen.
std::string address_of(const Consultation& consultation, const std::string& host) {
  const HostReport* report = find(consultation, host);
  if (!report || !report->seen) return {};
  for (const Nic& nic : report->seen->nics)
    if (nic.up && !nic.loopback) return nic.ip;
  return {};
}

std::string list_of(const std::vector<std::string>& all, const char* separator) {
  std::string text;
  for (const std::string& each : all) text += (text.empty() ? "" : separator) + each;
  return text;
}

// A firewall that lets in one range needs to be told of that range, and so do we.
Remedy open_firewall(const Consultation& consultation, const std::vector<std::string>& from) {
  const bool any = consultation.last_port == 0;
  const int first = any ? kFirstAdvised : consultation.first_port;
  const int last = any ? kLastAdvised : consultation.last_port;
  std::vector<std::string> sources;
  for (const std::string& host : from)
    if (auto ip = address_of(consultation, host); !ip.empty()) sources.push_back(std::move(ip));
  const bool is_v6 = !sources.empty() && sources.front().find(':') != std::string::npos;
  const auto who = sources.empty() ? ""
                                   : fmt::format(" ip{} saddr {{ {} }}", is_v6 ? "6" : "",
                                                 list_of(sources, ", "));
  return {Where::there,
          fmt::format("sudo nft insert rule inet filter input{} tcp dport {}-{} accept", who, first,
                      last)};
}

// Those without whom all others reach each other: again and again the one with most closed ways,
// the later in the list if two have as many.
std::vector<std::string> too_many(const Consultation& consultation, std::set<Pair> closed) {
  std::vector<std::string> out;
  while (!closed.empty()) {
    std::map<std::string, int> count;
    for (const auto& [from, to] : closed) ++count[from], ++count[to];
    std::string worst;
    for (const HostReport& host : consultation.hosts)
      if (count[host.host] > 0 && (worst.empty() || count[host.host] >= count[worst]))
        worst = host.host;
    if (worst.empty()) break;
    out.push_back(worst);
    std::erase_if(closed, [&](const Pair& p) { return p.first == worst || p.second == worst; });
  }
  return out;
}

// One for each host that some do not reach.
void check_closed(const Consultation& consultation, const std::map<Pair, Way>& ways, Ledger& to) {
  std::map<std::string, std::vector<std::string>> closed;  // by whom they do not reach
  std::set<Pair> pairs;
  for (const auto& [pair, way] : ways)
    if (way.open.empty()) {
      closed[pair.second].push_back(pair.first);
      pairs.insert(pair);
    }
  const auto without = too_many(consultation, pairs);
  for (const auto& [target, from] : closed) {
    const Way& way = ways.at({from.front(), target});
    Finding finding{Severity::bad, Class::network, {}, {}, way.why, {}, {}};
    finding.hosts = from;
    finding.what = fmt::format("{} not reach {} at {}", from.size() == 1 ? "it does" : "they do",
                               target, list_of(way.closed, ", "));
    const HostReport* report = find(consultation, target);
    const Remedy remedy = open_firewall(consultation, from);
    finding.fix = report ? to.command(remedy, {report}) : remedy.command;
    finding.without = without;
    to.add(std::move(finding));
  }
}

// Each who tried has reached it, but by no address that is good for all.
void check_common(const Consultation& consultation, const std::map<Pair, Way>& ways, Ledger& to) {
  for (const HostReport& host : consultation.hosts) {
    std::map<std::string, int> reached;
    int tried = 0;
    bool closed = false;
    for (const auto& [pair, way] : ways) {
      if (pair.second != host.host) continue;
      ++tried;
      closed |= way.open.empty();
      for (const std::string& ip : way.open) ++reached[ip];
    }
    const bool common = std::any_of(reached.begin(), reached.end(),
                                    [&](const auto& each) { return each.second == tried; });
    if (tried == 0 || closed || common) continue;
    to.add(host, {Severity::bad,
                  Class::network,
                  "no address of it is good for all others",
                  {Where::there, "ip -brief address; ip route"}});
  }
}

}  // namespace

void check_network(const Consultation& consultation, Ledger& to) {
  const auto ways = ways_of(consultation);
  check_closed(consultation, ways, to);
  check_common(consultation, ways, to);
}

}  // namespace corro::launcher::doctor
