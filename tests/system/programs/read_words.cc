// Reads command lines from stdin, each a line of JSON (["-np", "2", …]), and prints for each what
// is made of it, a line of JSON too: {"options": [["--num-proc", ["2"]], …], "command", "unknown"}
// or {"error"}, and "command_at": where the command begins.  For holding the reading of arguments
// against Python's argparse.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/arguments.h"

namespace {

nlohmann::json reading_of(const std::vector<std::string>& words) {
  const auto read = corro::cli::read_arguments(words);
  if (!read) return {{"error", read.error().text()}};
  auto options = nlohmann::json::array();
  for (const corro::cli::Given& given : read->options)
    options.push_back({given.option->name(), given.values});
  return {{"options", options}, {"command", read->command}, {"unknown", read->unknown}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto words = nlohmann::json::parse(line).get<std::vector<std::string>>();
    auto reading = reading_of(words);
    reading["command_at"] = corro::cli::standing_after(words).command.value_or(words.size());
    std::cout << reading.dump() << "\n";
  }
}
