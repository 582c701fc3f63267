#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "spirals.h"

// What the network has learned, for a terminal: the plane, shaded by the arm that it would
// answer there, and the samples in it.
class Picture {
 public:
  Picture() : cells_(kRows * kColumns) {}

  // `answer` is positive for one arm, negative for the other.
  template <class Answer>
  void shade(Answer answer) {
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < kColumns; ++column)
        at(row, column).answer = std::tanh(answer(place(column, kColumns), -place(row, kRows)) / 2);
  }

  void mark(const std::vector<Sample>& samples) {
    for (const Sample& s : samples) at(pixel(-s.y, kRows), pixel(s.x, kColumns)).arm = s.arm;
  }

  void print(bool color) const {
    for (int row = 0; row < kRows; row += 2) {
      std::string line = "  ";
      for (int column = 0; column < kColumns; ++column) {
        const Cell &upper = at(row, column), &lower = at(row + 1, column);
        line += color ? in_color(upper, lower) : in_text(upper, lower);
      }
      std::printf("%s%s\n", line.c_str(), color ? "\033[0m" : "");
    }
  }

 private:
  struct Cell {
    double answer = 0;  // -1 to 1
    double arm = 0;     // of the sample here; 0: none
  };

  static constexpr int kColumns = 64, kRows = 60;  // a character is two rows high
  static constexpr double kReach = 1.15;           // of the plane to each side

  Cell& at(int row, int column) { return cells_[row * kColumns + column]; }
  const Cell& at(int row, int column) const { return cells_[row * kColumns + column]; }

  static double place(int index, int count) { return kReach * ((2 * index + 1.0) / count - 1); }
  static int pixel(double place, int count) {
    return std::clamp(static_cast<int>((place / kReach + 1) / 2 * count), 0, count - 1);
  }

  // Half a character each: the colour of the text above, that of its ground below.
  static std::string in_color(const Cell& upper, const Cell& lower) {
    return "\033[38;5;" + std::to_string(color_of(upper)) + ";48;5;" +
           std::to_string(color_of(lower)) + "m▀";
  }

  static int color_of(const Cell& cell) {
    if (cell.arm != 0) return cell.arm > 0 ? 208 : 45;
    if (std::abs(cell.answer) < 0.5) return cell.answer > 0 ? 95 : 60;
    return cell.answer > 0 ? 52 : 17;
  }

  static const char* in_text(const Cell& upper, const Cell& lower) {
    const double arm = upper.arm != 0 ? upper.arm : lower.arm;
    if (arm != 0) return arm > 0 ? "●" : "○";
    const double answer = (upper.answer + lower.answer) / 2;
    return answer > 0.5 ? "▒" : answer > -0.5 ? "░" : " ";
  }

  std::vector<Cell> cells_;
};
