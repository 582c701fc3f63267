#include "launcher/job/reach.h"

#include <algorithm>
#include <string_view>

namespace corro::launcher {

bool takes_ssh_options(const Reach& reach) {
  if (reach.rsh_agent.empty()) return true;
  const std::string_view program = reach.rsh_agent.front();
  return program.substr(program.rfind('/') + 1) == "ssh";
}

Command agent_command(const std::string& self, const HostSpec& host, const Reach& reach, bool here,
                      Duration patience) {
  if (here) return {{self, "--guard"}};
  Target target;
  target.host = host.name;
  target.user = host.user;
  target.port = reach.ssh_port;
  target.identities = reach.identities;
  target.policy = reach.host_keys;
  target.rsh_agent = reach.rsh_agent;
  target.connect_timeout = std::min(patience, kConnectTimeout);
  target.connect_limit = patience - patience / 10;
  Command command{{self}};
  for (std::string& word : pipe_arguments(target)) command.argv.push_back(std::move(word));
  return command;
}

}  // namespace corro::launcher
