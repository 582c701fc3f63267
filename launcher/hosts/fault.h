#pragma once

#include <string>
#include <string_view>

#include "base/complaint.h"
#include "base/result.h"

namespace corro::launcher {

// What is wrong with a part of a text, before it is known whose text it is.
struct Fault {
  Spot spot;
  std::string what, hint;

  Error in(const Text& text) const { return complaint(text, spot, what, hint); }
};

template <class T>
using Parsed = Result<T, Fault>;

// The character at text[i] does not belong where it is; `at` is where `text` stands.
Fault misplaced_character(std::string_view text, std::size_t i, std::size_t at,
                          std::string_view where);

}  // namespace corro::launcher
