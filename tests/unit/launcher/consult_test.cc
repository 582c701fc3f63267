#include "launcher/job/consult.h"

#include <catch2/catch.hpp>

namespace corro::launcher {

TEST_CASE("the doctor is called to the job's hosts, by the job's ways") {
  JobSpec spec;
  spec.hosts = {{"h1", 2}, {"h2", 1, "ada", {}}};
  CHECK(doctor_command(spec) == "horovodrun doctor -H h1:2,ada@h2:1");
  spec.reach.ssh_port = 2222;
  spec.reach.identities = {"k1", "my key"};
  spec.placement.interfaces = {"eth0", "ib0"};
  spec.placement.ports = {20000, 20100};
  CHECK(doctor_command(spec) ==
        "horovodrun doctor -H h1:2,ada@h2:1 -p 2222 -i k1 -i 'my key' "
        "--network-interfaces eth0,ib0 --port-range 20000-20100");
  spec.reach = {};
  spec.reach.rsh_agent = {"kubectl", "exec", "a b"};
  spec.placement = {};
  CHECK(doctor_command(spec) ==
        "horovodrun doctor -H h1:2,ada@h2:1 --rsh-agent 'kubectl exec '\\''a b'\\'''");
}

}  // namespace corro::launcher
