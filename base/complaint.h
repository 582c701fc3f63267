#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace corro {

// Something that the user wrote, and what it is called in messages: "hosts.txt", "argument
// -H/--hosts".
struct Text {
  std::string name;
  std::string_view content;  // borrowed
  bool is_file = false;      // has lines, even if it is one
};

// A part of a text, in bytes.
struct Spot {
  std::size_t at = 0, length = 1;
};

// What is wrong with a text, and where:
//
//   hosts.txt:3:14: slots must be a number from 1 to 1048576
//     node01 slots=four
//                  ^~~~
//     Did you mean 'slots=4'?
//
// A text of one line that is no file ("argument …") has no line and column in front.  Columns are
// characters, from 1.  A long line is cut to what surrounds the spot; what a terminal would obey or
// not show at all is shown as '?'.
Error complaint(const Text&, Spot, std::string_view what, std::string_view hint = {});

// The candidate that was probably meant: at most a third of its letters differ, whatever their
// case; the first of the nearest.  Empty if none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace corro
