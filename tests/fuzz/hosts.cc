#include "launcher/hosts/hosts.h"

#include "base/address.h"
#include "tests/fuzz/fuzz.h"

using namespace corro;
using namespace corro::launcher;

namespace {

// Files that name each other would be read without end.
Result<std::string> read_file(const std::string& path) {
  if (path == "b") return std::string("b slots=2\n@b\n");
  return path == "a" ? Result<std::string>("a slots=2\nn[1-3]:4 binding=x\n")
                     : Error(Errc::not_found, "no such file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Text text{"argument -H/--hosts", text_of({data, size})};
  const auto list = fuzz::in_time([&] { return parse_hosts(text, read_file); });
  if (!list) return 0;
  fuzz::require(!list->hosts.empty(), "a list of hosts has one at least");
  for (const HostSpec& host : list->hosts)
    fuzz::require(fuzz::is_host_name(host.name) && host.slots >= 0, "a host has a name");
  for (const HostSpec& host : list->hosts)
    fuzz::require(host.address.empty() || is_ip(host.address), "an address is numeric");
  const auto printed = print_hosts(list->hosts, HostFormat::horovod);
  const auto again = parse_hosts({"again", printed}, nullptr);
  fuzz::require(again && again->hosts == list->hosts, "hosts print to a text that says the same");
  return 0;
}
