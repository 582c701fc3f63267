#pragma once

#include <string>

namespace kolo {

// What somebody says next at a place that several share.
struct Words {
  std::string text;
  const void* speaker = nullptr;  // null: the launcher itself, who speaks in whole lines
};

// Where the words of several meet.  What the launcher says begins on a line of its own.  Other than
// that a program reads what Horovod would have written; at a terminal, where people read, no line
// begins behind another.
class Seam {
 public:
  explicit Seam(bool on_terminal) : on_terminal_(on_terminal) {}

  // What has to stand in front of them.
  std::string before(const Words&) const;
  void wrote(const Words&);

  bool inside_line() const { return last_ != '\n'; }

 private:
  bool on_terminal_;
  char last_ = '\n';
};

}  // namespace kolo
