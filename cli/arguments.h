#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"

namespace corro::cli {

// An option that was given, by whichever of its names.
struct Given {
  const Option* option;
  std::vector<std::string> values;
  bool operator==(const Given&) const = default;
};

// The command line as argparse reads it: our options up to the first word that is none, and from
// there on the user's command.
struct Arguments {
  std::vector<Given> options;        // in order
  std::vector<std::string> command;  // nobody looks into it
  std::vector<std::string> unknown;  // words that look like options
};

// Pure.  Python's argparse is the specification, error messages and their order included
// (tests/system/test_argparse.py runs both): single-dash words, abbreviations, "--name=value",
// "-Hvalue", values that look like negative numbers.  Two things differ, both for the better:
// the command's own words are never taken for ambiguous options of ours, and an abbreviation that
// Horovod understands keeps its meaning whatever we add.
//
// --help and --version end the reading where they stand, as they end argparse.
Result<Arguments> read_arguments(std::span<const std::string> words);

// What may follow some words: for one who is still typing.
struct Standing {
  const Option* wants_value = nullptr;  // the last word is an option that takes one more
  std::optional<std::size_t> command;   // the word that the user's command begins with
};
Standing standing_after(std::span<const std::string> words);

}  // namespace corro::cli
