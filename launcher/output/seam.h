#pragma once

#include <optional>
#include <string>

namespace corro::launcher {

// What somebody says next at a place that several share.
struct Words {
  std::string text;
  const void* speaker = nullptr;         // null: the launcher itself, who speaks in whole lines
  std::optional<std::string> resumed{};  // they go on with a line that had this tag
  bool open = false;                     // and they, too, are to be gone on with
};

// Where the words of several meet.  What the launcher says begins on a line of its own, and a line
// that is still to go on is broken when another speaks, and resumed behind a tag.  Other than that
// a program reads what Horovod would have written; at a terminal, where people read, no line begins
// behind another, nor on a progress bar of another whose end would still be seen.
class Seam {
 public:
  explicit Seam(bool on_terminal) : on_terminal_(on_terminal) {}

  // What has to stand in front of them.
  std::string before(const Words&) const;
  void wrote(const Words&);

  bool inside_line() const { return last_ != '\n'; }

 private:
  bool on_terminal_;
  const void* speaker_ = nullptr;  // of what was written last
  bool open_ = false;
  char last_ = '\n';
};

}  // namespace corro::launcher
