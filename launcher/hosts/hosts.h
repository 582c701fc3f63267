#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kolo {

// A host as the user wrote it.  `localhost` and `127.0.0.1` are two hosts.
struct HostSpec {
  std::string name;
  int slots = 1;
  bool operator==(const HostSpec&) const = default;
};

inline constexpr int kSlotsLimit = 1 << 20;  // of all hosts together

// "a:2,b:4".  A host that is named twice has the slots of both.
Result<std::vector<HostSpec>> parse_hosts(std::string_view text);
std::string print_hosts(const std::vector<HostSpec>&);

// What this machine is called: its names, and the addresses of its interfaces.
std::set<std::string> names_of_this_machine();

// Pure: whether a host is this machine, going by its names alone.
bool is_this_machine(std::string_view host, const std::set<std::string>& names);

}  // namespace kolo
