#include "launcher/hosts/hosts.h"
#include "tests/fuzz/fuzz.h"

using namespace corro;
using namespace corro::launcher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Text text{"SLURM_JOB_NODELIST", text_of({data, size})};
  const auto names = fuzz::in_time([&] { return parse_node_list(text); });
  if (!names) return 0;
  std::vector<HostSpec> hosts;
  for (const std::string& name : *names) {
    fuzz::require(fuzz::is_host_name(name), "a host has a name");
    hosts.push_back({name});
  }
  const auto folded = fuzz::in_time([&] { return print_hosts(hosts, HostFormat::slurm); });
  const auto again = parse_node_list({"again", folded});
  fuzz::require(again && *again == *names, "names fold to a list that stands for them");
  return 0;
}
