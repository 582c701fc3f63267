#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "launcher/pipe/pipe.h"

namespace corro::launcher {

namespace {

constexpr std::string_view kSsh = "--ssh-pipe", kRsh = "--rsh-pipe", kHostFollows = "--";
constexpr std::array kPolicies = {std::pair{HostKeyPolicy::strict, "strict"},
                                  std::pair{HostKeyPolicy::accept_new, "accept-new"}};
constexpr int kLastPort = 65535;

using Words = std::vector<std::string>;

void put(Words& to, const char* name, const std::string& value) {
  if (!value.empty()) to.insert(to.end(), {name, value});
}

bool set_text(std::string& field, const std::string& value) {
  field = value;
  return !value.empty();
}

bool set_port(int& field, const std::string& value) {
  const auto port = parse_int(value);
  if (!port || *port < 1 || *port > kLastPort) return false;
  field = static_cast<int>(*port);
  return true;
}

bool set_policy(HostKeyPolicy& field, const std::string& value) {
  for (const auto& [policy, name] : kPolicies)
    if (value == name) {
      field = policy;
      return true;
    }
  return false;
}

bool set_milliseconds(Duration& field, const std::string& value) {
  constexpr long long kDay = 86'400'000;
  const auto count = parse_int(value);
  if (!count || *count < 1 || *count > kDay) return false;
  field = std::chrono::milliseconds(*count);
  return true;
}

bool add(Words& field, const std::string& value) {
  field.push_back(value);
  return true;
}

// Whether there is such an option, and its value can be read.
bool set_option(Target& target, const std::string& name, const std::string& value) {
  if (name == "--user") return set_text(target.user, value);
  if (name == "--port") return set_port(target.port, value);
  if (name == "--identity") return add(target.identities, value);
  if (name == "--host-key-policy") return set_policy(target.policy, value);
  if (name == "--rsh-word") return add(target.rsh_agent, value);
  if (name == "--connect-timeout") return set_milliseconds(target.connect_timeout, value);
  if (name == "--connect-limit") return set_milliseconds(target.connect_limit, value);
  if (name == "--self") return set_text(target.self, value);
  if (name == "--jump") return set_text(target.jump, value);
  if (name == "--forward-to") return set_text(target.forward_to, value);
  return false;
}

}  // namespace

std::vector<std::string> pipe_arguments(const Target& target) {
  Words out{std::string(target.rsh_agent.empty() ? kSsh : kRsh)};
  put(out, "--user", target.user);
  if (target.port != 0) put(out, "--port", std::to_string(target.port));
  for (const std::string& file : target.identities) out.insert(out.end(), {"--identity", file});
  for (const auto& [policy, name] : kPolicies)
    if (policy == target.policy) put(out, "--host-key-policy", name);
  for (const std::string& word : target.rsh_agent) out.insert(out.end(), {"--rsh-word", word});
  const auto put_time = [&](const char* name, Duration time, Duration otherwise) {
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(time);
    if (rounded != otherwise) put(out, name, std::to_string(rounded.count()));
  };
  put_time("--connect-timeout", target.connect_timeout, kConnectTimeout);
  put_time("--connect-limit", target.connect_limit, kNoLimit);
  put(out, "--self", target.self);
  put(out, "--jump", target.jump);
  put(out, "--forward-to", target.forward_to);
  out.insert(out.end(), {std::string(kHostFollows), target.host});
  return out;
}

Result<Target> parse_pipe_arguments(std::span<const std::string> words) {
  const auto wrong = [](const std::string& word) {
    return Error(Errc::invalid_input, fmt::format("'{}' is not an argument of a pipe", word));
  };
  if (words.empty() || (words[0] != kSsh && words[0] != kRsh)) return wrong("");
  const bool by_command = words[0] == kRsh;
  Target target;
  std::size_t at = 1;
  for (; at + 1 < words.size() && words[at] != kHostFollows; at += 2)
    if (!set_option(target, words[at], words[at + 1])) return wrong(words[at]);
  if (at + 2 != words.size() || words[at] != kHostFollows || words[at + 1].empty())
    return Error(Errc::invalid_input, "a pipe needs '-- HOST' after its options");
  target.host = words[at + 1];
  if (by_command == target.rsh_agent.empty())
    return Error(Errc::invalid_input, "--rsh-pipe needs --rsh-word, and --ssh-pipe has none");
  return target;
}

}  // namespace corro::launcher
