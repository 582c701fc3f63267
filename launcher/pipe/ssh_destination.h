#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/pipe/pipe.h"
#include "launcher/pipe/reach_result.h"
#include "launcher/pipe/ssh_config.h"
#include "launcher/pipe/ssh_session.h"

namespace corro::launcher {

// Where a connection goes and how, with nothing left open; and what is said when it does not.  Only
// decides.
struct Destination {
  std::string host;  // as the user calls it
  std::string name;  // to resolve
  std::string user, host_key_alias, address_family;
  int port = 22;
  HostKeyPolicy policy = HostKeyPolicy::strict;
  Duration connect_timeout{};
  SshSession::Credentials credentials;
  std::vector<std::string> user_known_hosts, global_known_hosts;
  bool hides_names = false;  // in the file that it writes to
  std::string jump, proxy;   // at most one
  std::optional<std::pair<std::string, int>> forward_to;
  std::vector<std::string> unsupported;
  std::string passed_over;

  // Under which its key may be kept; it is written down under the first.
  std::vector<std::string> known_names() const;
  std::vector<std::string> known_hosts_files() const;

  // What carries the connection, if it is not ours; `self` for a pipe of our own to the host
  // before.
  std::vector<std::string> proxy_command(const std::string& self) const;

  std::string described(const std::string& address) const;
  std::string caution() const;  // to be added to why it is not reached
  std::string ssh_command(const std::string& options = "") const;

  agent::Unreached stranger(Acquaintance, const HostKey&, const std::string& described) const;
  agent::Unreached not_admitted(const LoginAttempt&, const std::string& described) const;
};

Destination destination_of(const Target&, const SshSettings&, const SshSurroundings&);

}  // namespace corro::launcher
