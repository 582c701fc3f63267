#include "launcher/pipe/rsh_command.h"

#include <string_view>

namespace corro::launcher {

namespace {

using Words = std::vector<std::string>;

bool put_in_place(std::string& word, const std::string& host) {
  constexpr std::string_view kPlace = "{host}";
  auto at = word.find(kPlace);
  const bool has_place = at != word.npos;
  for (; at != word.npos; at = word.find(kPlace, at + host.size()))
    word.replace(at, kPlace.size(), host);
  return has_place;
}

Words ssh_options(const Target& target) {
  Words out;
  if (target.port != 0) out.insert(out.end(), {"-p", std::to_string(target.port)});
  for (const std::string& file : target.identities) out.insert(out.end(), {"-i", file});
  return out;
}

}  // namespace

std::vector<std::string> rsh_command(const Target& target) {
  const std::string host = target.user.empty() ? target.host : target.user + "@" + target.host;
  Words argv = target.rsh_agent;
  bool placed = false;
  for (std::string& word : argv) placed = put_in_place(word, host) || placed;
  // First, since of two ports ssh takes the one that it reads first.
  const Words options = ssh_options(target);
  argv.insert(argv.begin() + 1, options.begin(), options.end());
  if (!placed) argv.push_back(host);
  argv.push_back("sh");
  return argv;
}

}  // namespace corro::launcher
