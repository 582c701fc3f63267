#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kolo {

// One option of the command line.  The table of them is what the parser, --help, the man page and
// the completions are made from.
struct Option {
  std::string_view name;   // "--num-proc"
  std::string_view brief;  // "-np"; may be empty
  std::string_view value;  // what its value is called; empty: it takes none
  std::string_view help;
};

std::span<const Option> options();

// The command line cut as argparse cuts it: our options, each by its full name and with its value
// as "--name=value", and from the first word that is none on the user's command.
struct Cut {
  std::vector<std::string> options;
  std::vector<std::string> command;
  bool operator==(const Cut&) const = default;
};

// Pure.  Long options may be abbreviated as far as they stay unambiguous; errors have argparse's
// words, which scripts may look for.
Result<Cut> cut(std::span<const std::string> arguments);

std::string usage_text();
std::string help_text();

}  // namespace kolo
