#include "launcher/job/wayfinding.h"

#include <fmt/format.h>

#include <span>

#include "launcher/job/memory.h"
#include "launcher/job/placing.h"
#include "launcher/network/interfaces.h"

namespace corro::launcher {

namespace {

// When every host is this machine: loopback, unless the user names interfaces.
Result<Door, Unmet> way_inside(const std::vector<std::string>& interfaces) {
  if (interfaces.empty()) return kLoopback;
  const auto doors = narrowed(inner_addresses(), std::span(interfaces).first(1));
  if (doors.empty()) return Unmet{"localhost", "has no address on interface " + interfaces.front()};
  return doors.front();
}

}  // namespace

Wayfinding::Wayfinding(Loop& loop, const JobSpec& spec, const Key& key,
                       std::vector<std::string> hosts)
    : loop_(loop), spec_(spec), key_(key), hosts_(std::move(hosts)), addressing_(hosts_) {}

// The launcher has doors too, where those who are elsewhere will find the store.
void Wayfinding::open_doors() {
  is_elsewhere_ = true;
  reception_.emplace(loop_, key_, Addressing::kLauncher,
                     narrowed(own_addresses(), spec_.placement.interfaces), spec_.placement.ports);
  addressing_.has_doors(Addressing::kLauncher, reception_->doors());
}

std::optional<agent::Opener> Wayfinding::opener_for(const HostSpec& host) const {
  if (!is_elsewhere_) return std::nullopt;
  return launcher::opener_for(host, spec_.placement, key_);
}

void Wayfinding::has_doors(const std::string& host, const std::vector<Door>& doors) {
  addressing_.has_doors(host, doors);
}

bool Wayfinding::begin() {
  if (is_elsewhere_) recall_ways();
  return is_elsewhere_;
}

agent::Knock Wayfinding::knock_for(const std::string& host) const {
  return {addressing_.to_knock_at(host)};
}

Wayfinding::Step Wayfinding::knocked(const std::string& host,
                                     const std::vector<Opening>& openings) {
  addressing_.knocked(host, openings);
  if (!addressing_.all_knocked()) return Step::waiting;
  if (addressing_.is_refuted()) {
    addressing_.assume_nothing();
    return Step::knock_again;
  }
  remember_ways();
  return Step::done;
}

Result<Door, Unmet> Wayfinding::way_to(const std::string& host) const {
  return is_elsewhere_ ? addressing_.way_to(host) : way_inside(spec_.placement.interfaces);
}

std::string Wayfinding::question() const {
  const auto text = fmt::format("{};{}", addressing_.question(), spec_.placement.ports.text());
  return hex(sha256(view_of(text)));
}

void Wayfinding::recall_ways() {
  if (!spec_.reach.remembers) return;
  if (const auto known = recall(read_memory(), question(), std::chrono::system_clock::now()))
    addressing_.assume(*known);
}

// Not again what was remembered: a better way may have been shut when it was chosen.
void Wayfinding::remember_ways() const {
  if (!spec_.reach.remembers || addressing_.assumes()) return;
  KnownWays ways;
  for (const std::string& host : hosts_)
    if (const auto way = addressing_.way_to(host)) ways[host] = way->ip;
  if (const auto way = addressing_.way_to(Addressing::kLauncher))
    ways[Addressing::kLauncher] = way->ip;
  if (ways.size() == hosts_.size() + 1)
    write_memory(remember(read_memory(), question(), ways, std::chrono::system_clock::now()));
}

}  // namespace corro::launcher
