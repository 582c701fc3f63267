#include "launcher/hosts/hosts.h"

#include <numeric>

#include <charconv>

#include "launcher/hosts/node_list.h"

namespace corro::launcher {

namespace {

void append_number(std::string& to, int number) {
  char digits[16];
  to.append(digits, std::to_chars(digits, std::end(digits), number).ptr);
}

void append_user(std::string& to, const HostSpec& host) {
  if (!host.user.empty()) to.append(host.user).append("@");
}

void append_address(std::string& to, const HostSpec& host) {
  if (host.address.empty()) return;
  to += '/';
  append_host(to, host.address);
}

// -H's list.
std::string print_line(std::span<const HostSpec> hosts) {
  std::string out;
  for (const HostSpec& host : hosts) {
    if (!out.empty()) out += ',';
    append_user(out, host);
    append_host(out, host.name);
    append_address(out, host);
    if (host.slots == 0) continue;
    out += ':';
    append_number(out, host.slots);
  }
  return out;
}

// Open MPI knows no second address and no brackets, of which none are needed where slots follow.
std::string print_file(std::span<const HostSpec> hosts) {
  std::string out;
  for (const HostSpec& host : hosts) {
    append_user(out, host);
    if (host.slots == 0)
      append_host(out, host.name);
    else
      out.append(host.name);
    if (host.slots != 0) append_number(out.append(" slots="), host.slots);
    out += '\n';
  }
  return out;
}

std::string print_folded(std::span<const HostSpec> hosts) {
  std::vector<std::string_view> names;
  for (const HostSpec& host : hosts) names.push_back(host.name);
  return fold_names(names);
}

}  // namespace

int total_slots(std::span<const HostSpec> hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int slots, const HostSpec& host) { return slots + host.slots; });
}

std::string print_hosts(std::span<const HostSpec> hosts, HostFormat format) {
  switch (format) {
    case HostFormat::horovod:
      return print_line(hosts);
    case HostFormat::openmpi:
      return print_file(hosts);
    case HostFormat::slurm:
      return print_folded(hosts);
  }
  return {};
}

}  // namespace corro::launcher
