#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace corro::cli {

using Words = std::vector<std::string>;

// Words are set apart by blanks; '' is an empty one, and ~ stands for a blank inside a word.
inline Words words(std::string_view line) {
  Words out;
  if (line.empty()) return out;
  for (const auto word : split(line, ' ')) {
    out.emplace_back(word == "''" ? "" : word);
    for (char& c : out.back())
      if (c == '~') c = ' ';
  }
  return out;
}

}  // namespace corro::cli
