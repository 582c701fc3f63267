#include "launcher/hosts/hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

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

void add(std::vector<HostSpec>& hosts, HostSpec host) {
  const auto same = [&](const HostSpec& known) { return known.name == host.name; };
  const auto known = std::find_if(hosts.begin(), hosts.end(), same);
  if (known == hosts.end())
    hosts.push_back(std::move(host));
  else
    known->slots += host.slots;
}

}  // namespace

Result<std::vector<HostSpec>> parse_hosts(std::string_view text) {
  std::vector<HostSpec> hosts;
  long long slots = 0;
  for (const auto part : split(text, ',')) {
    auto host = parse_host(trimmed(part));
    if (!host) return host.error();
    slots += host->slots;
    if (slots > kSlotsLimit)
      return Error(Errc::invalid_input,
                   fmt::format("the hosts have more than {} slots together", kSlotsLimit));
    add(hosts, std::move(*host));
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
  return host == "localhost" || host.starts_with("127.") || names.contains(std::string(host));
}

}  // namespace kolo
