#include "launcher/pipe/rsh_command.h"

#include <string_view>

namespace kolo {

std::vector<std::string> rsh_command(std::vector<std::string> agent, const std::string& host) {
  constexpr std::string_view kPlace = "{host}";
  bool placed = false;
  for (std::string& word : agent) {
    for (auto at = word.find(kPlace); at != word.npos; at = word.find(kPlace, at + host.size())) {
      word.replace(at, kPlace.size(), host);
      placed = true;
    }
  }
  if (!placed) agent.push_back(host);
  agent.push_back("sh");
  return agent;
}

}  // namespace kolo
