#pragma once

#include <string>
#include <vector>

namespace corro::cli {

// Columns of text, each as wide as its widest cell.
class Table {
 public:
  explicit Table(std::vector<std::string> titles) { add(std::move(titles)); }

  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  // Two blanks in front and between, no blanks at the ends of lines.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace corro::cli
