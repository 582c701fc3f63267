#include "launcher/network/interfaces.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>

namespace corro::launcher {

namespace {

// Empty for what nobody else can use.
std::string usable_ip(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address && address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
  } else if (address && address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (!IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
      ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::uint32_t speed_of(const std::string& interface) {
  std::ifstream file("/sys/class/net/" + interface + "/speed");
  long long mbits = 0;
  return file >> mbits && mbits > 0 ? static_cast<std::uint32_t>(mbits) : 0;
}

bool has(std::span<const Door> doors, const std::string& interface) {
  return std::any_of(doors.begin(), doors.end(),
                     [&](const Door& door) { return door.interface == interface; });
}

}  // namespace

std::vector<Door> own_addresses() {
  std::vector<Door> out;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return out;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(first, ::freeifaddrs);
  for (const ifaddrs* i = first; i; i = i->ifa_next) {
    const bool useful = (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_LOOPBACK) == 0;
    const auto ip = useful ? usable_ip(i->ifa_addr) : std::string();
    if (!ip.empty()) out.push_back({i->ifa_name, ip, 0, speed_of(i->ifa_name)});
  }
  return out;
}

std::vector<Door> inner_addresses() {
  auto out = own_addresses();
  out.insert(out.begin(), kLoopback);
  return out;
}

std::vector<Door> narrowed(std::vector<Door> doors, std::span<const std::string> interfaces,
                           const std::string& address) {
  const auto unwanted = [&](const Door& door) {
    return std::find(interfaces.begin(), interfaces.end(), door.interface) == interfaces.end();
  };
  if (!interfaces.empty()) std::erase_if(doors, unwanted);
  if (!address.empty()) std::erase_if(doors, [&](const Door& door) { return door.ip != address; });
  return doors;
}

std::vector<std::string> present(std::span<const std::string> interfaces,
                                 std::span<const Door> doors) {
  std::vector<std::string> out;
  for (const std::string& name : interfaces)
    if (has(doors, name)) out.push_back(name);
  return out;
}

Result<Unit> check_interfaces(std::span<const std::string> interfaces, std::span<const Door> here,
                              bool others) {
  std::vector<std::string> missing;
  for (const std::string& name : interfaces)
    if (!has(here, name)) missing.push_back(name);
  if (missing.empty() || (others && missing.size() < interfaces.size())) return Unit{};
  std::vector<std::string> there;
  for (const Door& door : here)
    if (std::find(there.begin(), there.end(), door.interface) == there.end())
      there.push_back(door.interface);
  return Error(
      Errc::invalid_input,
      fmt::format("--network-interfaces: this machine has no interface {} with an address; "
                  "it has {}",
                  fmt::join(missing, ", "),
                  there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", "))));
}

}  // namespace corro::launcher
