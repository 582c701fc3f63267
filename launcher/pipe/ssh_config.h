#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace corro::launcher {

// What the user's ssh configuration says about a host.  Empty or 0: nothing.
//
// All of it is read here, and libssh's own reader is left off: it does not know IdentitiesOnly,
// cannot tell accept-new, has one file of known hosts and starts `ssh` for ProxyJump; and two
// readers that take turns would disagree about which value came first.
struct SshSettings {
  std::string host_name, user, host_key_alias;
  int port = 0;
  std::vector<std::string> identities;
  bool identities_only = false;
  std::string identity_agent;             // a path, "none" or "SSH_AUTH_SOCK"
  std::string proxy_jump, proxy_command;  // at most one of them; "none" is one, too
  std::vector<std::string> user_known_hosts, global_known_hosts;
  bool hash_known_hosts = false;
  int connect_timeout_s = 0;
  std::string strict_host_key_checking;  // in small letters
  std::string address_family;            // "inet", "inet6", "any"
  std::vector<std::string> unsupported;  // what we cannot do, as the keywords that ask for it
  std::string passed_over;               // a Match that says where to go, if we could tell: "exec"
  bool operator==(const SshSettings&) const = default;
};

// What a configuration may refer to.
struct SshSurroundings {
  std::string home, local_user;
  std::function<std::optional<std::string>(const std::string& path)> read;
  std::function<std::vector<std::string>(const std::string& pattern)> find;  // as glob(3) does
  std::function<std::optional<std::string>(const std::string& name)> variable;
};

// ~/.ssh/config, then /etc/ssh/ssh_config; of each value the first that fits the host counts.
// Match knows all, host, originalhost, user and localuser; a Match by anything else (exec, final)
// does not apply, and is named in `passed_over`.  `user`: if given otherwise.  ~, ${VARIABLES} and
// %-signs have been replaced.
SshSettings read_ssh_config(const std::string& host, const std::string& user, int port,
                            const SshSurroundings&);

}  // namespace corro::launcher
