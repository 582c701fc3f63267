#pragma once

#include <string>
#include <vector>

#include "cli/parse.h"

namespace corro::cli {

// What may stand at the end of a command line that is being typed.
struct Completion {
  struct Candidate {
    std::string text, help;  // the whole word
    bool operator==(const Candidate&) const = default;
  };
  // The shell's part: nothing more, its own files, folders or programs, or what it has for the
  // command that begins at the word `command`.
  enum class Then { nothing, files, folders, programs, command };

  std::vector<Candidate> candidates;
  Then then = Then::nothing;
  std::size_t command = 0;
  bool goes_on = false;  // a candidate is not the end of its word: "host:"
  std::string prefix;    // of the word, which is not part of the file's name: "--hostfile="
};

// Reads what the line names (a host file) and what the user can reach (ssh's configuration, the
// network interfaces), and changes nothing.  `words` are those after the program's name, without
// quotes; the last is the one being typed.
Completion complete(const std::vector<std::string>& words, const Surroundings&);

// For the shells' scripts: a line with `then`, `command`, "space" or "nospace" and the prefix; then
// for each candidate a line with its text, a tab and its help.
std::string print_completion(const Completion&);

}  // namespace corro::cli
