#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/hosts/fault.h"

namespace corro::launcher {

// Longer than any DNS name.
inline constexpr std::size_t kNameLimit = 255;

// [01-16]: numbers with as many digits as the first one has, or more.
struct Range {
  std::int64_t first = 0, last = 0;
  std::size_t width = 1;
};

// A name with ranges in it: "rack[1-2]node[01-16,20].example".
class NamePattern {
 public:
  // `at` is where it stands in the whole text.  A name without brackets is a pattern, too.
  static Parsed<NamePattern> parse(std::string_view, std::size_t at);

  // How many names it stands for, at least; exact up to `limit`.
  std::int64_t count(std::int64_t limit) const;

  // In Slurm's order: the last bracket runs fastest.
  std::vector<std::string> names() const;

 private:
  // A name is the front, then a number and what follows it, for every bracket.
  struct Part {
    std::vector<Range> ranges;
    std::string after;
  };
  void add_names(std::string& front, std::size_t part, std::vector<std::string>& to) const;
  std::size_t longest() const;
  void add(std::vector<Range>);
  std::string& tail() { return parts_.empty() ? front_ : parts_.back().after; }

  std::string front_;
  std::vector<Part> parts_;
};

inline bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

// The name, in brackets if it is an IPv6 address.
void append_host(std::string& to, std::string_view name);

// "node[01-04,07],login" for names in this order.
std::string fold_names(std::span<const std::string_view>);

}  // namespace corro::launcher
