// --include and --exclude, in DeepSpeed's words: "w1@w2:0,2".
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/text.h"
#include "launcher/hosts/hosts.h"
#include "launcher/hosts/item.h"
#include "launcher/hosts/node_list.h"

namespace corro::launcher {

namespace {

using Hosts = std::vector<HostSpec>;

// Of one host: which of its slots were named; none: all of them.
struct Choice {
  bool is_named = false, is_whole = false;
  std::vector<int> slots;  // rising
};

std::vector<int> slots_of(const HostSpec& host) {
  if (!host.chosen.empty()) return host.chosen;
  std::vector<int> all(host.slots);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

bool has_slot(const HostSpec& host, long long slot) {
  if (host.chosen.empty()) return slot >= 0 && slot < host.slots;
  return std::binary_search(host.chosen.begin(), host.chosen.end(), slot);
}

std::string slots_in_words(const HostSpec& host) {
  if (host.chosen.empty() && host.slots > 1) return fmt::format("slots 0 to {}", host.slots - 1);
  const auto slots = slots_of(host);
  return fmt::format("slot{} {}", slots.size() == 1 ? "" : "s", fmt::join(slots, ", "));
}

// Choices for all hosts, in their order.
class Chooser {
 public:
  explicit Chooser(const Hosts& hosts) : hosts_(hosts), choices_(hosts.size()) {
    places_.reserve(hosts.size());
    for (std::size_t i = 0; i < hosts.size(); ++i) places_.emplace(hosts[i].name, i);
  }

  Parsed<Unit> read(std::string_view text);
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  Parsed<Unit> read_item(std::string_view item, std::size_t at);
  Parsed<Unit> choose(std::string_view name, std::size_t at, std::string_view tail,
                      std::size_t tail_at);
  Parsed<Unit> read_slots(std::string_view text, std::size_t at, std::size_t place);
  Fault unknown(std::string_view name, std::size_t at) const;

  const Hosts& hosts_;
  std::vector<Choice> choices_;
  std::unordered_map<std::string_view, std::size_t> places_;
};

Parsed<Unit> Chooser::read(std::string_view text) {
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find('@', at), text.size());
    const Spot spot = trimmed(text, at, end);
    if (auto ok = read_item(text.substr(spot.at, spot.length), spot.at); !ok) return ok;
    at = end + 1;
  }
  for (Choice& choice : choices_) {
    auto& slots = choice.slots;
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  }
  return Unit{};
}

Parsed<Unit> Chooser::read_item(std::string_view item, std::size_t at) {
  if (item.empty()) return Fault{{at, 1}, "a host is missing here", ""};
  const auto colon = end_of_item(item, 0, ":");
  const bool has_brackets = item[0] == '[' && item[colon - 1] == ']';
  const auto name = item.substr(has_brackets, colon - 2 * has_brackets);
  if (has_brackets) return choose(name, at, item.substr(colon), at + colon);
  const auto pattern = NamePattern::parse(name, at);
  if (!pattern) return unknown(item.substr(0, colon), at);
  if (pattern->count(kHostsLimit) > kHostsLimit)
    return Fault{{at, colon}, fmt::format("these are more than {} hosts", kHostsLimit), ""};
  for (const std::string& each : pattern->names())
    if (auto ok = choose(each, at, item.substr(colon), at + colon); !ok) return ok;
  return Unit{};
}

// One host, and of it the slots that `tail` names: ":0,2", or nothing.
Parsed<Unit> Chooser::choose(std::string_view name, std::size_t at, std::string_view tail,
                             std::size_t tail_at) {
  const auto place = places_.find(name);
  if (place == places_.end()) return unknown(name, at);
  choices_[place->second].is_named = true;
  if (!tail.empty()) return read_slots(tail.substr(1), tail_at + 1, place->second);
  choices_[place->second].is_whole = true;
  return Unit{};
}

Parsed<Unit> Chooser::read_slots(std::string_view text, std::size_t at, std::size_t place) {
  const HostSpec& host = hosts_[place];
  for (const auto part : split(text, ',')) {
    const Spot spot = trimmed(part, 0, part.size());
    const auto word = part.substr(spot.at, spot.length);
    const auto dash = word.find('-');
    const auto first = parse_int(word.substr(0, dash));
    const auto last = dash == word.npos ? first : parse_int(word.substr(dash + 1));
    if (!first || !last || *first > *last)
      return Fault{{at + spot.at, spot.length}, "slots are numbers or ranges, as in 0,2-3", ""};
    if (!has_slot(host, *first) || !has_slot(host, *last))
      return Fault{{at + spot.at, spot.length},
                   fmt::format("'{}' has {}", host.name, slots_in_words(host)),
                   ""};
    for (long long slot = *first; slot <= *last; ++slot)
      if (has_slot(host, slot)) choices_[place].slots.push_back(static_cast<int>(slot));
    at += part.size() + 1;
  }
  return Unit{};
}

Fault Chooser::unknown(std::string_view name, std::size_t at) const {
  constexpr std::size_t kFew = 8;
  std::vector<std::string_view> names;
  for (const HostSpec& host : hosts_) names.push_back(host.name);
  const auto known = nearest(name, names);
  std::string hint;
  if (!known.empty())
    hint = fmt::format("Did you mean '{}'?", known);
  else if (name.find(',') != name.npos)
    hint = "Hosts are parted by '@' here, slots by ','.";
  else if (names.size() <= kFew)
    hint = fmt::format("There are {}.", fmt::join(names, ", "));
  return {{at, name.size()}, fmt::format("'{}' is not among the hosts", name), hint};
}

void keep(HostSpec& host, std::vector<int> slots) {
  host.slots = static_cast<int>(slots.size());
  host.chosen = std::move(slots);
}

std::vector<int> without(const HostSpec& host, const std::vector<int>& dropped) {
  const auto all = slots_of(host);
  std::vector<int> left;
  std::set_difference(all.begin(), all.end(), dropped.begin(), dropped.end(),
                      std::back_inserter(left));
  return left;
}

}  // namespace

Result<Hosts> include(Hosts hosts, const Text& text) {
  Chooser chooser(hosts);
  if (auto ok = chooser.read(text.content); !ok) return ok.error().in(text);
  Hosts left;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const Choice& choice = chooser.choices()[i];
    if (!choice.is_named) continue;
    left.push_back(std::move(hosts[i]));
    if (!choice.is_whole) keep(left.back(), choice.slots);
  }
  return left;
}

Result<Hosts> exclude(Hosts hosts, const Text& text) {
  Chooser chooser(hosts);
  if (auto ok = chooser.read(text.content); !ok) return ok.error().in(text);
  Hosts left;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const Choice& choice = chooser.choices()[i];
    if (choice.is_whole) continue;
    left.push_back(std::move(hosts[i]));
    if (!choice.is_named) continue;
    keep(left.back(), without(left.back(), choice.slots));
    if (left.back().slots == 0) left.pop_back();
  }
  if (left.empty())
    return complaint(text, {0, text.content.size()}, "this leaves no slot on any host");
  return left;
}

}  // namespace corro::launcher
