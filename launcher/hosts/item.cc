#include "launcher/hosts/item.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "launcher/hosts/hosts.h"

namespace corro::launcher {

namespace {

// ssh would read a user or a host that begins with '-' as an option.
Parsed<Unit> check_start(std::string_view name, std::size_t at, std::string_view what) {
  if (name.empty()) return Fault{{at, 1}, fmt::format("{} is missing here", what), ""};
  if (name[0] == '-') return Fault{{at, 1}, fmt::format("{} cannot begin with '-'", what), ""};
  return Unit{};
}

Parsed<Unit> read_name(std::string_view name, std::size_t at, Item& to) {
  if (auto ok = check_start(name, at, "a host name"); !ok) return ok.error();
  to.name = name;
  const auto bad = std::find_if_not(name.begin(), name.end(), is_name_byte) - name.begin();
  if (bad == std::ssize(name) && name.size() <= kNameLimit) return Unit{};
  auto pattern = NamePattern::parse(name, at);
  if (!pattern) return pattern.error();
  to.pattern = std::move(*pattern);
  return Unit{};
}

Parsed<Unit> read_address(std::string_view address, std::size_t at, Item& to) {
  const auto zone = address.find('%');
  if (zone != address.npos)
    return Fault{{at + zone, address.size() - zone},
                 "an address that needs the name of an interface cannot be used",
                 ""};
  if (!is_ipv6(address)) return Fault{{at, address.size()}, "this is not an IPv6 address", ""};
  to.name = address;
  return Unit{};
}

// "host:4:2", or an address of which nobody can say where it ends.
Fault several_colons(std::string_view host, std::size_t second, std::size_t at) {
  const auto cut = host.rfind(':');
  if (is_ipv6(host) || is_ipv6(host.substr(0, cut)))
    return {{at, host.size()}, "an IPv6 address stands in brackets", ""};
  return {
      {at + second, host.size() - second}, "a host and its slots have one ':' between them", ""};
}

// What follows the name: nothing, or ':' and the slots.
Parsed<Unit> read_tail(std::string_view tail, std::size_t at, Item& to) {
  if (tail.empty()) return Unit{};
  if (tail[0] != ':') return Fault{{at, tail.size()}, "expected ':' and the slots here", ""};
  auto slots = parse_slots(tail.substr(1), at + 1);
  if (!slots) return slots.error();
  to.slots = *slots;
  return Unit{};
}

Parsed<Unit> read_host(std::string_view host, std::size_t at, AddressStyle style, Item& to) {
  if (host.starts_with('[')) {
    const auto close = std::min(host.find(']'), host.size() - 1);
    const auto group = host.substr(1, close - 1);
    if (host[close] == ']' && group.find(':') != group.npos) {
      auto ok = read_address(group, at + 1, to);
      return ok ? read_tail(host.substr(close + 1), at + close + 1, to) : ok;
    }
  }
  const auto colon = end_of_item(host, 0, ":");
  const auto second = host.find(':', std::min(colon + 1, host.size()));
  if (second != host.npos && style == AddressStyle::bare && is_ipv6(host)) {
    to.name = host;
    return Unit{};
  }
  if (second != host.npos) return several_colons(host, second, at);
  auto ok = read_name(host.substr(0, colon), at, to);
  return ok ? read_tail(host.substr(colon), at + colon, to) : ok;
}

// Behind the '/': "10.0.0.1:4", "[fd00::1]".
Parsed<Unit> read_internal(std::string_view text, std::size_t at, Item& to) {
  const bool bracketed = text.starts_with('[');
  const auto end = std::min(bracketed ? text.find(']') : text.find(':'), text.size());
  to.address = bracketed ? text.substr(1, end - 1) : text.substr(0, end);
  if (!(bracketed ? end < text.size() && is_ipv6(to.address) : is_ipv4(to.address)))
    return Fault{{at, std::max<std::size_t>(text.size(), 1)},
                 "a numeric address is expected behind '/'",
                 ""};
  const auto tail = end + (bracketed ? 1 : 0);
  return read_tail(text.substr(tail), at + tail, to);
}

// "name/address:slots": the slots stand behind the address.
Parsed<Unit> read_both(std::string_view host, std::size_t slash, std::size_t at, Item& to) {
  if (auto ok = read_host(host.substr(0, slash), at, AddressStyle::in_brackets, to); !ok) return ok;
  if (to.slots != 0)
    return Fault{{at, slash}, "the slots stand behind the address, as in 'a/10.0.0.1:4'", ""};
  if (to.pattern) return Fault{{at, host.size()}, "several hosts cannot have the same address", ""};
  return read_internal(host.substr(slash + 1), at + slash + 1, to);
}

}  // namespace

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

Spot trimmed(std::string_view text, std::size_t from, std::size_t to) {
  while (from < to && is_blank(text[from])) ++from;
  while (from < to && is_blank(text[to - 1])) --to;
  return {from, to - from};
}

bool is_ipv6(std::string_view text) {
  in6_addr address;
  return text.size() < INET6_ADDRSTRLEN && text.find('\0') == text.npos &&
         ::inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

bool is_ipv4(std::string_view text) {
  in_addr address;
  return text.size() < INET_ADDRSTRLEN && text.find('\0') == text.npos &&
         ::inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
}

std::size_t end_of_item(std::string_view text, std::size_t from, std::string_view stops) {
  bool in_brackets = false;
  for (; from < text.size(); ++from) {
    const char c = text[from];
    if (is_name_byte(c)) continue;
    if (c == '[') in_brackets = true;
    if (c == ']') in_brackets = false;
    if (!in_brackets && stops.find(c) != stops.npos) break;
  }
  return from;
}

Parsed<Unit> check_user(std::string_view user, std::size_t at) {
  constexpr std::string_view kWhat = "a user name";
  const auto fits = [](char c) { return is_name_byte(c) || c == '+' || c == '$'; };
  const auto bad = std::find_if_not(user.begin(), user.end(), fits) - user.begin();
  if (bad < std::ssize(user)) return misplaced_character(user, bad, at, kWhat);
  if (user.size() > kNameLimit)
    return Fault{
        {at, user.size()}, fmt::format("{} has at most {} characters", kWhat, kNameLimit), ""};
  return check_start(user, at, kWhat);
}

Parsed<int> parse_slots(std::string_view text, std::size_t at) {
  if (text.empty()) return Fault{{at, 1}, "the number of slots is missing here", ""};
  const auto slots = parse_int(text);
  if (!slots || *slots < 0 || *slots > kSlotsLimit)
    return Fault{
        {at, text.size()}, fmt::format("slots must be a number from 0 to {}", kSlotsLimit), ""};
  return *slots == 0 ? kSwitchedOff : static_cast<int>(*slots);
}

Parsed<Item> read_item(std::string_view text, std::size_t at, AddressStyle style) {
  const auto blank = end_of_item(text, 0, " \t\r\n");
  if (blank < text.size())
    return Fault{{at + blank, 1}, "hosts are parted by commas, not by blanks", ""};
  Item item{{at, text.size()}, {}, {}, {}, 0, {}};
  const auto sign = text.find('@');
  if (sign != text.npos) {
    item.user = text.substr(0, sign);
    if (auto ok = check_user(item.user, at); !ok) return ok.error();
    at += sign + 1;
    text.remove_prefix(sign + 1);
  }
  const auto slash = text.find('/');
  auto ok =
      slash == text.npos ? read_host(text, at, style, item) : read_both(text, slash, at, item);
  if (!ok) return ok.error();
  return item;
}

Parsed<Item> parse_item(std::string_view text, std::size_t at, AddressStyle style) {
  auto item = read_item(text, at, style);
  if (item || !item.error().hint.empty()) return item;
  const auto guess = repaired(text);
  if (!guess.empty()) item.error().hint = fmt::format("Did you mean '{}'?", guess);
  return item;
}

}  // namespace corro::launcher
