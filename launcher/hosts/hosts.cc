#include "launcher/hosts/hosts.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"

namespace kolo {

namespace {

// Longer than any DNS name.
constexpr std::size_t kNameLimit = 255;

bool is_name(std::string_view text) {
  constexpr auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= kNameLimit && std::all_of(text.begin(), text.end(), fits);
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Result<HostSpec> parse_host(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos)
    return Error(Errc::invalid_input, fmt::format("'{}': expected host:slots", text));
  const auto name = text.substr(0, colon);
  if (!is_name(name))
    return Error(Errc::invalid_input, fmt::format("'{}': '{}' is not a host name", text, name));
  const auto slots = parse_int(text.substr(colon + 1));
  if (!slots || *slots < 1 || *slots > kSlotsLimit)
    return Error(Errc::invalid_input,
                 fmt::format("'{}': slots must be a number from 1 to {}", text, kSlotsLimit));
  return HostSpec{std::string(name), static_cast<int>(*slots)};
}

bool is_loopback(std::string_view host) {
  in_addr address;
  return host.starts_with("127.") && ::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
}

}  // namespace

Result<std::vector<HostSpec>> parse_hosts(std::string_view text) {
  std::vector<HostSpec> hosts;
  std::unordered_map<std::string, std::size_t> places;  // in `hosts`, by name
  long long slots = 0;
  for (bool more = true; more;) {
    const auto comma = text.find(',');
    auto host = parse_host(trimmed(text.substr(0, comma)));
    if (!host) return host.error();
    slots += host->slots;
    if (slots > kSlotsLimit)
      return Error(Errc::invalid_input,
                   fmt::format("the hosts have more than {} slots together", kSlotsLimit));

    const auto [place, is_new] = places.try_emplace(host->name, hosts.size());
    if (is_new)
      hosts.push_back(std::move(*host));
    else
      hosts[place->second].slots += host->slots;
    more = comma != text.npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return hosts;
}

std::string print_hosts(const std::vector<HostSpec>& hosts) {
  std::string text;
  for (const HostSpec& host : hosts)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", host.name, host.slots);
  return text;
}

bool is_this_machine(std::string_view host, const std::set<std::string>& names) {
  return host == "localhost" || is_loopback(host) || names.contains(std::string(host));
}

}  // namespace kolo
