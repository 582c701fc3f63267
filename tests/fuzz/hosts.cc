#include "launcher/hosts/hosts.h"

#include "tests/fuzz/fuzz.h"

using namespace kolo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto hosts = parse_hosts(text_of({data, size}));
  if (!hosts) return 0;
  fuzz::require(!hosts->empty(), "a list of hosts has one at least");
  for (const HostSpec& host : *hosts)
    fuzz::require(!host.name.empty() && host.slots > 0, "a host has a name and slots");
  const auto again = parse_hosts(print_hosts(*hosts));
  fuzz::require(again && *again == *hosts, "hosts print to a text that says the same");
  return 0;
}
