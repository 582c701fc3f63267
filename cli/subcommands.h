#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "cli/parse.h"

namespace corro::cli {

// Words that mean something of their own as the very first argument.  A program of such a name can
// be started after any option, or by its path.
struct Subcommand {
  std::string_view name, arguments, help;
  std::span<const Option> options;  // of its own

  std::string usage() const;  // "hosts [EXPR] [--format horovod|json]"
};
std::span<const Subcommand> subcommands();

// By the first of the words; null: it is none.
const Subcommand* subcommand_of(std::span<const std::string> words);

// Whether it is the one that takes a job's own options and command.
bool asks_for_doctor(std::span<const std::string> words);

// None: the first word is none of the others.
std::optional<Result<Request>> parse_subcommand(const std::vector<std::string>& words,
                                                const Surroundings&);

}  // namespace corro::cli
