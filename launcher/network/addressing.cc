#include "launcher/network/addressing.h"

#include <fmt/format.h>

#include <algorithm>

namespace corro::launcher {

namespace {

std::string list_of(const std::vector<Door>& doors) {
  std::string text;
  for (const Door& door : doors)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", door.ip, door.interface);
  return text;
}

bool is_better(const Door& a, const Door& b) {
  const auto is_v6 = [](const Door& door) { return door.ip.find(':') != door.ip.npos; };
  if (a.mbits != b.mbits) return a.mbits > b.mbits;
  return !is_v6(a) && is_v6(b);
}

}  // namespace

void Addressing::has_doors(const std::string& host, std::vector<Door> doors) {
  doors_[host] = std::move(doors);
}

std::vector<std::string> Addressing::targets_of(const std::string& host) const {
  const auto own = std::find(hosts_.begin(), hosts_.end(), host);
  if (own == hosts_.end()) return {};
  const auto n = hosts_.size(), at = static_cast<std::size_t>(own - hosts_.begin());
  std::set<std::string> targets = {hosts_.front(), hosts_[(at + 1) % n]};
  if (at == 0) targets.insert(hosts_.back());
  targets.erase(host);
  std::vector<std::string> out = {kLauncher};
  out.insert(out.end(), targets.begin(), targets.end());
  return out;
}

std::vector<Doorway> Addressing::to_knock_at(const std::string& host) const {
  std::vector<Doorway> out;
  for (const std::string& target : targets_of(host))
    if (const auto assumed = assumed_.find(target); assumed != assumed_.end())
      out.push_back({target, {assumed->second}});
    else if (const auto doors = doors_.find(target); doors != doors_.end())
      out.push_back({target, doors->second});
  return out;
}

void Addressing::knocked(const std::string& host, const std::vector<Opening>& openings) {
  auto& own = knocks_[host];
  for (const Opening& opening : openings) own[opening.host] = opening;
}

std::string Addressing::question() const {
  std::string text;
  for (const std::string& host : hosts_) text += host + ',';
  for (const auto& [host, doors] : doors_) {
    text += ';' + host;
    for (const Door& door : doors) text += fmt::format(",{} {}", door.interface, door.ip);
  }
  return text;
}

bool Addressing::assume(const std::map<std::string, std::string>& addresses) {
  std::map<std::string, Door> assumed;
  for (const auto& [host, doors] : doors_) {
    const auto known = addresses.find(host);
    const auto door = std::find_if(doors.begin(), doors.end(), [&](const Door& d) {
      return known != addresses.end() && d.ip == known->second;
    });
    if (door == doors.end()) return false;
    assumed[host] = *door;
  }
  assumed_ = std::move(assumed);
  return true;
}

bool Addressing::is_refuted() const {
  const auto found_none = [](const auto& openings) {
    return std::any_of(openings.second.begin(), openings.second.end(),
                       [](const auto& opening) { return opening.second.doors.empty(); });
  };
  return assumes() && std::any_of(knocks_.begin(), knocks_.end(), found_none);
}

void Addressing::assume_nothing() {
  assumed_.clear();
  knocks_.clear();
}

Result<Door, Unmet> Addressing::way_to(const std::string& host) const {
  if (const auto assumed = assumed_.find(host); assumed != assumed_.end()) return assumed->second;
  const auto known = doors_.find(host);
  if (known == doors_.end() || known->second.empty())
    return Unmet{host, "has no address by which others could reach it"};
  const std::vector<Door>& doors = known->second;
  std::vector<int> reached(doors.size());
  int tried = 0;
  for (const auto& [who, knocks] : knocks_) {
    const auto opening = knocks.find(host);
    if (opening == knocks.end()) continue;
    if (opening->second.doors.empty())
      return Unmet{who, fmt::format("cannot reach {} at {}: {}",
                                    host == kLauncher ? "the launcher" : "host " + host,
                                    list_of(doors), opening->second.trouble)};
    ++tried;
    for (const auto door : opening->second.doors)
      if (door < doors.size()) ++reached[door];
  }
  std::optional<Door> best;
  for (std::size_t i = 0; i < doors.size(); ++i)
    if (reached[i] == tried && (!best || is_better(doors[i], *best))) best = doors[i];
  if (best) return *best;
  return Unmet{host,
               fmt::format("is reached by no address that is good for all: {}", list_of(doors))};
}

}  // namespace corro::launcher
