// What stands in one line: -H's list, and Slurm's.
#include <fmt/format.h>

#include "base/text.h"
#include "launcher/hosts/gathering.h"
#include "launcher/hosts/hosts.h"

namespace corro::launcher {

namespace {

// Nothing is written where an item could be, at content[from, to).
Fault missing_host(std::string_view content, std::size_t from, std::size_t to) {
  if (from == 0 && to == content.size()) return {{0, 1}, "no host is named", ""};
  if (from == 0) return {{to, 1}, "a host is missing before this comma", ""};
  if (to == content.size())
    return {{from - 1, 1}, "a host is missing after the last comma", "Leave the comma out."};
  return {{from - 1, to - from + 2}, "a host is missing between these commas", ""};
}

// Gives each item, with its place, to `use`.
template <class Use>
Result<Unit> for_each_item(const Text& text, Use use) {
  const auto content = text.content;
  if (content.size() > kHostTextLimit)
    return Error(Errc::invalid_input, text.name + ": this is too long for a list of hosts");
  for (std::size_t at = 0; at <= content.size();) {
    const auto end = end_of_item(content, at, ",");
    const Spot spot = trimmed(content, at, end);
    if (spot.length == 0) return missing_host(content, at, end).in(text);
    auto used = use(content.substr(spot.at, spot.length), spot);
    if (!used) return used;
    at = end + 1;
  }
  return Unit{};
}

Result<Unit> in(const Text& text, const Parsed<Unit>& ok) {
  if (!ok) return ok.error().in(text);
  return Unit{};
}

bool has_slots(std::string_view path) {
  const auto colon = path.rfind(':');
  return colon != path.npos && parse_int(path.substr(colon + 1));
}

Result<HostList> read_list(const Text& text, std::string_view item, Spot spot,
                           const ReadFile& read_file) {
  const std::string path(item.substr(1));
  if (path.empty()) return complaint(text, spot, "the name of a host file is missing after '@'");
  auto content = read_file(path);
  if (content) return parse_host_file({path, *content, true});
  if (has_slots(path))
    return complaint(text, spot, "a host file says the slots of its hosts itself",
                     fmt::format("Did you mean '{}'?", item.substr(0, item.rfind(':'))));
  return complaint(text, spot, content.error().text());
}

}  // namespace

Result<HostList> parse_hosts(const Text& text, const ReadFile& read_file) {
  Gathering all;
  HostList list;
  const auto add_file = [&](std::string_view item, Spot spot) -> Result<Unit> {
    auto of_file = read_list(text, item, spot, read_file);
    if (!of_file) return of_file.error();
    for (HostSpec& host : of_file->hosts)
      if (auto ok = all.add(std::move(host), spot); !ok) return ok.error().in(text);
    for (std::string& note : of_file->notes) list.notes.push_back(std::move(note));
    return Unit{};
  };
  auto ok = for_each_item(text, [&](std::string_view item, Spot spot) -> Result<Unit> {
    if (item[0] == '@') return add_file(item, spot);
    const auto parsed = parse_item(item, spot.at);
    if (!parsed) return parsed.error().in(text);
    return in(text, all.add(*parsed));
  });
  if (!ok) return ok.error();
  for (std::string& note : all.notes()) list.notes.push_back(std::move(note));
  if (all.hosts().empty()) return Error(Errc::invalid_input, text.name + ": no host has slots");
  list.hosts = std::move(all.hosts());
  return list;
}

Result<std::vector<std::string>> parse_node_list(const Text& text) {
  std::vector<std::string> names;
  const auto add = [&](const Item& item) -> Parsed<Unit> {
    if (!item.user.empty() || !item.address.empty() || item.slots != 0)
      return Fault{item.spot, "a node list has names only", ""};
    const auto room = kHostsLimit - static_cast<std::int64_t>(names.size());
    if ((item.pattern ? item.pattern->count(kHostsLimit) : 1) > room)
      return Fault{item.spot, fmt::format("these are more than {} hosts", kHostsLimit), ""};
    if (!item.pattern) names.emplace_back(item.name);
    if (item.pattern)
      for (std::string& name : item.pattern->names()) names.push_back(std::move(name));
    return Unit{};
  };
  auto ok = for_each_item(text, [&](std::string_view item, Spot spot) -> Result<Unit> {
    const auto parsed = parse_item(item, spot.at);
    if (!parsed) return parsed.error().in(text);
    return in(text, add(*parsed));
  });
  if (!ok) return ok.error();
  return names;
}

}  // namespace corro::launcher
