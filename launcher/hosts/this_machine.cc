#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "launcher/hosts/hosts.h"

namespace kolo {

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

}  // namespace

std::set<std::string> names_of_this_machine() {
  std::set<std::string> names;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) {
    const std::string full = name.data();
    names.insert(full);
    names.insert(full.substr(0, full.find('.')));
  }
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return names;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(first, ::freeifaddrs);
  for (const ifaddrs* i = first; i; i = i->ifa_next)
    if (i->ifa_addr) names.insert(numeric(i->ifa_addr));
  names.erase("");
  return names;
}

}  // namespace kolo
