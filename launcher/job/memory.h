#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/output/tag.h"

namespace corro::launcher {

// By which address each host was reached, by its name.
using KnownWays = std::map<std::string, std::string>;

// What was found out about hosts a while ago, as a text of a line for each:
//
//   QUESTION SECONDS-SINCE-1970 HOST=ADDRESS HOST=ADDRESS …
//
// A question is a word that is the same only if everything is that the answer depends on.  What is
// older than an hour is as good as forgotten, and so is what cannot be read.
std::optional<KnownWays> recall(std::string_view memory, std::string_view question, WallTime now);
std::string remember(std::string_view memory, std::string_view question, const KnownWays&,
                     WallTime now);

// The file, ~/.cache/corro/ways: for nobody else to read or write; without a home there is none.
std::string read_memory();
void write_memory(const std::string&);

}  // namespace corro::launcher
