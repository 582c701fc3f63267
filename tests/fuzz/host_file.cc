#include "launcher/hosts/hosts.h"
#include "tests/fuzz/fuzz.h"

using namespace corro;
using namespace corro::launcher;

namespace {

void require_same(const std::vector<HostSpec>& hosts, HostFormat format) {
  const auto printed = print_hosts(hosts, format);
  const auto again = parse_host_file({"again", printed});
  fuzz::require(again && again->hosts == hosts, "hosts print to a file that says the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Text text{"hosts.txt", text_of({data, size})};
  const auto list = fuzz::in_time([&] { return parse_host_file(text); });
  if (!list) return 0;
  fuzz::require(!list->hosts.empty(), "a host file has one host at least");
  for (const HostSpec& host : list->hosts)
    fuzz::require(fuzz::is_host_name(host.name) && host.slots >= 0, "a host has a name");
  fuzz::require(list->notes.size() <= 32, "there are no more notes than keys");
  require_same(list->hosts, HostFormat::horovod);
  auto hosts = list->hosts;
  for (HostSpec& host : hosts) host.address.clear();  // of which Open MPI knows none
  require_same(hosts, HostFormat::openmpi);
  return 0;
}
