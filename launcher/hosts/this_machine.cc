#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <sstream>

#include "launcher/hosts/hosts.h"

namespace corro::launcher {

namespace {

std::string numeric(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(),
                text.size());
  else if (address->sa_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(),
                text.size());
  return text.data();
}

// An IPv6 address as the system prints it; any other name in small letters, without DNS's last dot.
std::string canonical(std::string_view name) {
  std::string host(name);
  if (host.size() > 1 && host.ends_with('.')) host.pop_back();
  std::transform(host.begin(), host.end(), host.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  in6_addr address;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_pton(AF_INET6, host.c_str(), &address) != 1) return host;
  return ::inet_ntop(AF_INET6, &address, text.data(), text.size());
}

bool is_loopback(const std::string& host) {
  in_addr address;
  return host == "::1" ||
         (host.starts_with("127.") && ::inet_pton(AF_INET, host.c_str(), &address) == 1);
}

// The names that a hosts(5) file has for these addresses and for loopback.
void add_names_from(std::istream& hosts, std::set<std::string>& names) {
  for (std::string line; std::getline(hosts, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address;
    words >> address;
    if (!is_loopback(address) && !names.contains(address)) continue;
    for (std::string name; words >> name;) names.insert(canonical(name));
  }
}

}  // namespace

bool is_this_machine(std::string_view host, const std::set<std::string>& names) {
  const std::string name = canonical(host);
  return name == "localhost" || is_loopback(name) || names.contains(name);
}

std::set<std::string> names_of_this_machine() {
  std::set<std::string> names;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) {
    const std::string full = name.data();
    names.insert(canonical(full));
    names.insert(canonical(full.substr(0, full.find('.'))));
  }
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return names;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(first, ::freeifaddrs);
  for (const ifaddrs* i = first; i; i = i->ifa_next)
    if (i->ifa_addr) names.insert(numeric(i->ifa_addr));
  names.erase("");
  std::ifstream hosts("/etc/hosts");
  add_names_from(hosts, names);
  return names;
}

}  // namespace corro::launcher
