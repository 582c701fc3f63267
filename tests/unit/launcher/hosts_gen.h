#pragma once

#include <rapidcheck.h>

#include "launcher/hosts/hosts.h"

// Hosts of all kinds, for properties.
namespace corro::launcher::gen {

inline rc::Gen<std::string> name_end() {
  return rc::gen::suchThat(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab.-_0129"))),
      [](const std::string& text) { return text.find_first_not_of("0123456789") != text.npos; });
}

inline rc::Gen<std::string> name() {
  const auto word =
      rc::gen::map(rc::gen::pair(rc::gen::element("h", "node0", "7", "_"), name_end()),
                   [](std::pair<const char*, std::string> parts) {
                     return (parts.first + parts.second).substr(0, 255);
                   });
  const auto numbered = rc::gen::map(rc::gen::inRange(0, 30), [](int n) {
    return std::string(n % 3 ? "n" : "n0") + std::to_string(n);
  });
  const auto address = rc::gen::map(rc::gen::inRange(1, 1 << 16),
                                    [](int n) { return "2001:db8::" + std::to_string(n % 10000); });
  return rc::gen::weightedOneOf<std::string>({{2, word}, {4, numbered}, {1, address}});
}

inline rc::Gen<HostSpec> host() {
  return rc::gen::apply(
      [](std::string name, int slots, std::string user, std::string address) {
        return HostSpec{std::move(name), slots, std::move(user), {}, std::move(address)};
      },
      name(), rc::gen::inRange(0, 1000), rc::gen::element<std::string>("", "", "ann", "j.doe"),
      rc::gen::element<std::string>("", "", "10.0.0.1", "fd00::7"));
}

// One at least, all with names of their own.
inline rc::Gen<std::vector<HostSpec>> host_list() {
  return rc::gen::nonEmpty(
      rc::gen::uniqueBy<std::vector<HostSpec>>(host(), [](const HostSpec& h) { return h.name; }));
}

}  // namespace corro::launcher::gen
