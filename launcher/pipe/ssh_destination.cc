#include "launcher/pipe/ssh_destination.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace corro::launcher {

namespace {

constexpr int kSshPort = 22;
constexpr const char* kNowhere = "/dev/null";

// What ssh looks for when nobody names a file, in its order.
constexpr const char* kUsualKeys[] = {"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519",
                                      "id_ed25519_sk"};

std::string first_of(const std::string& a, const std::string& b, const std::string& c = "") {
  return !a.empty() ? a : !b.empty() ? b : c;
}

std::string joined(const std::vector<std::string>& words, const char* between = ", ") {
  return fmt::format("{}", fmt::join(words, between));
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// StrictHostKeyChecking can also be told to look away.  We do not.
HostKeyPolicy policy_of(const Target& target, const SshSettings& settings) {
  if (target.policy != HostKeyPolicy::from_config) return target.policy;
  return settings.strict_host_key_checking == "accept-new" ? HostKeyPolicy::accept_new
                                                           : HostKeyPolicy::strict;
}

// IdentityAgent: a path, a variable that has one, or "none".
std::string agent_socket(const SshSettings& settings, const SshSurroundings& around) {
  const std::string said = first_of(settings.identity_agent, "SSH_AUTH_SOCK");
  if (said == "none") return "";
  if (said == "SSH_AUTH_SOCK") return around.variable(said).value_or("");
  return said.starts_with('$') ? around.variable(said.substr(1)).value_or("") : said;
}

SshSession::Credentials credentials_of(const Target& target, const SshSettings& settings,
                                       const SshSurroundings& around) {
  SshSession::Credentials out;
  out.agent_socket = agent_socket(settings, around);
  out.only_files = settings.identities_only;
  out.files = target.identities;
  out.files.insert(out.files.end(), settings.identities.begin(), settings.identities.end());
  if (out.files.empty())
    for (const char* key : kUsualKeys)
      out.files.push_back(fmt::format("{}/.ssh/{}", around.home, key));
  return out;
}

// "[user@]host[:port]", also as "ssh://…"; the port of an address of version 6 stands behind its
// bracket.
Target hop_of(std::string_view text) {
  Target hop;
  if (text.starts_with("ssh://")) text.remove_prefix(6);
  if (const auto at = text.rfind('@'); at != text.npos) {
    hop.user = text.substr(0, at);
    text.remove_prefix(at + 1);
  }
  const auto bracket = text.rfind(']');
  const auto colon = text.rfind(':');
  const bool is_bare_ip6 = bracket == text.npos && text.find(':') != colon;
  if (colon != text.npos && !is_bare_ip6 && (bracket == text.npos || colon > bracket)) {
    hop.port = static_cast<int>(parse_int(text.substr(colon + 1)).value_or(0));
    text = text.substr(0, colon);
  }
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  hop.host = text;
  return hop;
}

// ProxyJump of the host that is to be jumped from ("Host *") means all but this one.
std::string jump_of(const Target& target, const SshSettings& settings) {
  const std::string jump = first_of(target.jump, settings.proxy_jump);
  if (jump == "none") return "";
  const auto hops = split(jump, ',');
  return hop_of(hops.back()).host == target.host ? "" : jump;
}

std::optional<std::pair<std::string, int>> host_and_port(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const Target end = hop_of(text);
  return std::pair{end.host, end.port};
}

}  // namespace

Destination destination_of(const Target& target, const SshSettings& settings,
                           const SshSurroundings& around) {
  Destination to;
  to.host = target.host;
  to.name = first_of(settings.host_name, target.host);
  to.user = first_of(target.user, settings.user, around.local_user);
  to.port = target.port ? target.port : settings.port ? settings.port : kSshPort;
  to.host_key_alias = settings.host_key_alias;
  to.address_family = settings.address_family;
  to.policy = policy_of(target, settings);
  to.connect_timeout = settings.connect_timeout_s > 0
                           ? Duration(std::chrono::seconds(settings.connect_timeout_s))
                           : target.connect_timeout;
  to.connect_timeout = std::min(to.connect_timeout, target.connect_limit);
  to.credentials = credentials_of(target, settings, around);
  to.user_known_hosts = settings.user_known_hosts;
  if (to.user_known_hosts.empty())
    to.user_known_hosts = {around.home + "/.ssh/known_hosts", around.home + "/.ssh/known_hosts2"};
  if (to.user_known_hosts == std::vector<std::string>{"none"}) to.user_known_hosts = {kNowhere};
  to.hides_names = settings.hash_known_hosts;
  to.global_known_hosts = settings.global_known_hosts;
  if (to.global_known_hosts.empty())
    to.global_known_hosts = {"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"};
  to.jump = jump_of(target, settings);
  if (to.jump.empty() && settings.proxy_command != "none") to.proxy = settings.proxy_command;
  to.forward_to = host_and_port(target.forward_to);
  to.unsupported = settings.unsupported;
  to.passed_over = settings.passed_over;
  return to;
}

std::vector<std::string> Destination::known_names() const {
  if (!host_key_alias.empty()) return {host_key_alias};
  const std::string plain = lower(name);
  // A key that is kept for the host is good for its other ports, too, as in ssh.
  if (port == kSshPort) return {plain};
  return {fmt::format("[{}]:{}", plain, port), plain};
}

std::vector<std::string> Destination::known_hosts_files() const {
  auto files = user_known_hosts;
  files.insert(files.end(), global_known_hosts.begin(), global_known_hosts.end());
  return files;
}

std::vector<std::string> Destination::proxy_command(const std::string& self) const {
  if (!proxy.empty()) return {"/bin/sh", "-c", "exec " + proxy};
  if (jump.empty()) return {};
  const auto comma = jump.rfind(',');
  Target before = hop_of(comma == jump.npos ? jump : jump.substr(comma + 1));
  if (comma != jump.npos) before.jump = jump.substr(0, comma);
  before.policy = policy;
  before.connect_timeout = connect_timeout;
  before.forward_to = fmt::format("[{}]:{}", name, port);
  auto argv = pipe_arguments(before);
  argv.insert(argv.begin(), self.empty() ? "/proc/self/exe" : self);
  return argv;
}

std::string Destination::described(const std::string& address) const {
  const std::string& where = address.empty() ? name : address;
  if (!jump.empty()) return fmt::format("{} ({} port {}, by way of {})", host, where, port, jump);
  return fmt::format("{} ({} port {})", host, where, port);
}

std::string Destination::caution() const {
  if (passed_over.empty()) return "";
  return fmt::format(
      "; 'Match {}' in the ssh configuration was passed over, which --rsh-agent ssh would follow",
      passed_over);
}

std::string Destination::ssh_command(const std::string& options) const {
  const std::string with_port = port == kSshPort ? "" : fmt::format("-p {} ", port);
  return fmt::format("ssh {}{}{}@{}", options, with_port, user, host);
}

agent::Unreached Destination::stranger(Acquaintance acquaintance, const HostKey& key,
                                       const std::string& described) const {
  const std::string shown = fmt::format("{}: its {} key {}", described, key.kind, key.fingerprint);
  const bool forgets = user_known_hosts.front() == kNowhere;
  const std::string file = forgets ? "~/.ssh/known_hosts" : user_known_hosts.front();
  const std::string with_port = port == kSshPort ? "" : fmt::format("-p {} ", port);
  switch (acquaintance) {
    case Acquaintance::changed:
      return {agent::Barrier::host_key_changed,
              shown +
                  " is not the one it is known by. Either it was set up anew, or something else "
                  "answers in its name: find out which before anything else",
              fmt::format("ssh-keygen -f {} -R '{}'", file, known_names().front())};
    case Acquaintance::revoked:
      return {agent::Barrier::host_key_changed, shown + " has been revoked",
              fmt::format("ssh-keygen -f {} -F '{}'", file, known_names().front())};
    case Acquaintance::certified:
      return {
          agent::Barrier::unsupported,
          shown + " is known by a certificate authority only, which the built-in ssh cannot check",
          "--rsh-agent ssh"};
    case Acquaintance::known:
    case Acquaintance::unknown:
      break;
  }
  return {
      agent::Barrier::host_key_unknown,
      shown +
          " is not known. Compare it with what the host's administrator says (or 'ssh-keygen "
          "-lf' of its public key), then keep it, or use --host-key-policy accept-new" +
          (forgets ? "; to keep it, also take 'UserKnownHostsFile' out of the ssh configuration, "
                     "which says that no key is kept"
                   : ""),
      fmt::format("ssh-keyscan {}-H {} >> {}", with_port, name, file)};
}

agent::Unreached Destination::not_admitted(const LoginAttempt& attempt,
                                           const std::string& described) const {
  if (!attempt.failure.empty() && !attempt.dismissed)
    return {agent::Barrier::unreachable,
            fmt::format("{}: the login of user {} was not finished: {}", described, user,
                        attempt.failure),
            ssh_command("-v ") + " true"};
  std::string why = fmt::format("{}: does not let in user {}", described, user);
  why += attempt.tried.empty() ? "; there was no key to show"
                               : fmt::format("; tried {}", joined(attempt.tried));
  if (!attempt.locked.empty())
    why += fmt::format("; {} wants a passphrase", joined(attempt.locked));
  if (!attempt.failure.empty()) why += fmt::format("; {}", attempt.failure);
  why += caution();

  const bool by_key = attempt.ways.empty() || std::find(attempt.ways.begin(), attempt.ways.end(),
                                                        "publickey") != attempt.ways.end();
  if (!attempt.ways.empty()) why += fmt::format("; it takes {}", joined(attempt.ways));
  std::vector<std::string> beyond_us = unsupported;
  beyond_us.insert(beyond_us.end(), attempt.certificates.begin(), attempt.certificates.end());
  if (!by_key || !beyond_us.empty()) {
    why += fmt::format("; the built-in ssh cannot use {}",
                       beyond_us.empty() ? "any of these" : joined(beyond_us));
    return {agent::Barrier::unsupported, why, "--rsh-agent ssh"};
  }
  if (!attempt.locked.empty())
    return {agent::Barrier::refused, why, "ssh-add " + joined(attempt.locked, " ")};
  const std::string with_port = port == kSshPort ? "" : fmt::format("-p {} ", port);
  return {agent::Barrier::refused, why, fmt::format("ssh-copy-id {}{}@{}", with_port, user, host)};
}

}  // namespace corro::launcher
