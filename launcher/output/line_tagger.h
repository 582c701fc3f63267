#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/output/tag.h"

namespace corro::launcher {

// Puts a tag in front of each line of one stream of one worker.  A line ends at '\n' or '\r', so
// that progress bars come through as they are drawn.  What it returns is whole lines: two workers'
// lines can then not be torn apart.
//
// Sans-IO.  A line longer than the limit is passed on in pieces, of which only the first has a tag:
// memory is bounded, and whoever else writes is not held up by a line that may never end.
class LineTagger {
 public:
  static constexpr std::size_t kLineLimit = 1 << 20;

  LineTagger(const TagFormat&, Speaker, bool in_color);

  // `time` is when the worker wrote it.
  std::string feed(std::string_view bytes, WallTime time);

  // The last words of a worker often lack a newline.
  std::string finish();

  // The tag of the line of which only the beginning has been passed on.
  std::optional<std::string> open_line() const;

 private:
  void emit(std::string_view piece, std::string& to);
  std::string tag() const;

  TagFormat format_;
  Speaker speaker_;
  bool in_color_;
  std::string fixed_tag_;  // if the time does not matter
  std::string pending_;
  WallTime time_{};           // of the last bytes
  bool inside_line_ = false;  // its beginning has been passed on already
};

}  // namespace corro::launcher
