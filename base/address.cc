#include "base/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "base/text.h"

namespace corro {

std::string Address::text() const {
  const bool v6 = ip.find(':') != ip.npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", ip, v6 ? "]" : "", port);
}

Result<Address> Address::parse(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto port = colon == text.npos ? std::nullopt : parse_int(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535)
    return Error(Errc::invalid_input, fmt::format("'{}': expected address:port", text));
  auto ip = text.substr(0, colon);
  const bool bracketed = ip.starts_with('[') && ip.ends_with(']');
  if (bracketed) ip = ip.substr(1, ip.size() - 2);
  // "::1:80" might also be one address without a port.
  if (bracketed != (ip.find(':') != ip.npos))
    return Error(Errc::invalid_input, fmt::format("'{}': expected [address]:port", text));
  if (!is_ip(std::string(ip)))
    return Error(Errc::invalid_input, fmt::format("'{}' is not an IP address", ip));
  return Address{std::string(ip), static_cast<std::uint16_t>(*port)};
}

std::string PortRange::text() const {
  return fmt::format("{}-{}", first, last);
}

Result<PortRange> PortRange::parse(std::string_view text) {
  const auto dash = text.find('-');
  const auto from = parse_int(text.substr(0, dash));
  const auto to = dash == text.npos ? from : parse_int(text.substr(dash + 1));
  if (!from || !to || *from < 1 || *to > 65535 || *from > *to)
    return Error(Errc::invalid_input, "expected ports as 20000-20100");
  return PortRange{static_cast<std::uint16_t>(*from), static_cast<std::uint16_t>(*to)};
}

// What inet_pton reads ends with the first zero byte; an address has none.
bool is_ip(const std::string& text) {
  in6_addr ignored;
  return text.find('\0') == text.npos && (::inet_pton(AF_INET, text.c_str(), &ignored) == 1 ||
                                          ::inet_pton(AF_INET6, text.c_str(), &ignored) == 1);
}

}  // namespace corro
