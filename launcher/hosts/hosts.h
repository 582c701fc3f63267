#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/complaint.h"
#include "base/result.h"

namespace corro::launcher {

// A host as the user named it.  `localhost` and `127.0.0.1` are two hosts.
struct HostSpec {
  std::string name;         // without brackets, if it is an IPv6 address
  int slots = 0;            // 0: not said; as many as the host has GPUs, else one
  std::string user;         // to log in as; empty: whoever ssh takes
  std::vector<int> chosen;  // which of its slots, rising; empty: all of them, from 0
  std::string address;      // by which its peers reach it; empty: that is found out
  bool operator==(const HostSpec&) const = default;
};

inline constexpr int kSlotsLimit = 1 << 20;  // of all hosts together
inline constexpr int kHostsLimit = 1 << 17;  // what a few bytes with ranges can ask for in 100 ms
inline constexpr std::size_t kHostTextLimit = 64 << 20;

struct HostList {
  std::vector<HostSpec> hosts;     // every name once
  std::vector<std::string> notes;  // what was understood and does nothing here, a line each
  bool operator==(const HostList&) const = default;
};

using ReadFile = std::function<Result<std::string>(const std::string& path)>;

// What -H takes, items parted by commas:
//
//   a:4   a   user@a:4   [2001:db8::1]:4   rack[1-2]node[01-16,20]:8   public/10.0.0.1:4   @file
//
// Behind '/' stands the address by which the other hosts reach it, if we do by another.
// A host that is named twice has the slots of both; each mention without a number is then one.
Result<HostList> parse_hosts(const Text&, const ReadFile&);

// A host file, a line for each host, in whichever of these it is written:
//
//   a slots=4 max_slots=8   (Horovod, Open MPI, DeepSpeed)
//   a:4                     (Hydra)
//   rack[1-2]:8             (Slurm's node list, with or without slots)
//   a                       (machine files: a line for each slot)
//
// '#' begins a comment; blank lines, CRLF and a byte-order mark are fine.  A line may name several
// hosts, with commas.  Where no line has a number and some host comes twice, each line is a slot.
Result<HostList> parse_host_file(const Text&);

// Slurm's own list, names only, as they stand: "node[01-16,20],login1".
Result<std::vector<std::string>> parse_node_list(const Text&);

enum class HostFormat { horovod, openmpi, slurm };

// What the parsers above read back: -H's list in one line; a host file, which has no place for the
// addresses by which peers reach a host; a folded node list, which has none for slots and users
// either.
std::string print_hosts(std::span<const HostSpec>, HostFormat);

// --include and --exclude: "w1@w2:0,2" is all of w1, and slots 0 and 2 of w2.  Every name must be
// in the list, and every slot among its host's; slots must be known.
Result<std::vector<HostSpec>> include(std::vector<HostSpec>, const Text&);
Result<std::vector<HostSpec>> exclude(std::vector<HostSpec>, const Text&);

int total_slots(std::span<const HostSpec>);

// What this machine is called: its names, and the addresses of its interfaces.
std::set<std::string> names_of_this_machine();

// Pure: whether a host is this machine, going by its names alone.
bool is_this_machine(std::string_view host, const std::set<std::string>& names);

}  // namespace corro::launcher
