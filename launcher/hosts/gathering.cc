#include "launcher/hosts/gathering.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>

namespace corro::launcher {

namespace {

Fault too_many_hosts(Spot spot) {
  return {spot, fmt::format("these are more than {} hosts", kHostsLimit), ""};
}

}  // namespace

std::size_t NameIndex::find_or_add(std::string_view name, const std::vector<HostSpec>& hosts) {
  if (2 * (taken_ + 1) > table_.size()) grow(std::max<std::size_t>(2 * table_.size(), 16));
  const auto hash = static_cast<std::uint32_t>(std::hash<std::string_view>{}(name));
  for (auto i = hash;; ++i) {
    Entry& entry = table_[i & (table_.size() - 1)];
    if (entry.place == kFree) {
      entry = {hash, static_cast<std::uint32_t>(hosts.size())};
      ++taken_;
      return entry.place;
    }
    if (entry.hash == hash && hosts[entry.place].name == name) return entry.place;
  }
}

void NameIndex::expect(std::size_t names) {
  grow(std::bit_ceil(2 * names + 2));
}

void NameIndex::grow(std::size_t size) {
  std::vector<Entry> old(size);
  old.swap(table_);
  for (const Entry& entry : old) {
    auto i = entry.hash;
    while (entry.place != kFree && table_[i & (size - 1)].place != kFree) ++i;
    if (entry.place != kFree) table_[i & (size - 1)] = entry;
  }
}

void Gathering::expect(std::size_t mentions) {
  const auto likely = std::min<std::size_t>(mentions, kHostsLimit);
  hosts_.reserve(likely);
  index_.expect(likely);
}

Parsed<Unit> Gathering::add(const Item& item) {
  const std::string user(item.user);
  if (!item.pattern)
    return add({std::string(item.name), item.slots, user, {}, std::string(item.address)},
               item.spot);
  ranged_ += item.pattern->count(kHostsLimit);
  if (ranged_ > kHostsLimit) return too_many_hosts(item.spot);
  for (std::string& name : item.pattern->names()) {
    auto ok = add({std::move(name), item.slots, user, {}, {}}, item.spot);
    if (!ok) return ok;
  }
  return Unit{};
}

Parsed<Unit> Gathering::add(HostSpec host, Spot spot) {
  if (host.slots == kSwitchedOff) {
    left_out_.push_back(std::move(host.name));
    return Unit{};
  }
  slots_ += std::max(host.slots, 1);
  if (slots_ > kSlotsLimit)
    return Fault{spot, fmt::format("the hosts have more than {} slots together", kSlotsLimit), ""};
  const auto place = index_.find_or_add(host.name, hosts_);
  if (place < hosts_.size()) return merge(hosts_[place], host, spot);
  if (hosts_.size() == kHostsLimit) return too_many_hosts(spot);
  hosts_.push_back(std::move(host));
  return Unit{};
}

std::vector<std::string> Gathering::notes() const {
  if (left_out_.empty()) return {};
  std::string text = "left out, having no slots: " + left_out_.front();
  if (left_out_.size() > 1) text += fmt::format(" and {} more", left_out_.size() - 1);
  return {text};
}

Parsed<Unit> Gathering::merge(HostSpec& into, const HostSpec& host, Spot spot) {
  has_twice_ = true;
  if (!host.user.empty() && !into.user.empty() && host.user != into.user)
    return Fault{spot,
                 fmt::format("'{}' was named with the user '{}' before", host.name, into.user),
                 "One host has one user."};
  if (!host.address.empty() && !into.address.empty() && host.address != into.address)
    return Fault{spot,
                 fmt::format("'{}' was named with the address {} before", host.name, into.address),
                 "One host has one address for the others."};
  if (into.user.empty()) into.user = host.user;
  if (into.address.empty()) into.address = host.address;
  into.slots = std::max(into.slots, 1) + std::max(host.slots, 1);
  return Unit{};
}

}  // namespace corro::launcher
