#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace corro {

// A whole number in decimal and nothing else.
inline std::optional<long long> parse_int(std::string_view text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "a,,b" has three parts.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// The first two numbers of "2.36" or "6.18.44-cloud", to be compared; what is none is older than
// all.
using Version = std::pair<long long, long long>;
inline Version parse_version(std::string_view text) {
  const auto parts = split(text, '.');
  if (parts.size() < 2) return {};
  const auto major = parse_int(parts[0]), minor = parse_int(parts[1]);
  return major && minor ? Version{*major, *minor} : Version{};
}

// The character that a text begins with.  A byte that is not UTF-8 is one, too.
struct CodePoint {
  static constexpr char32_t kNotUtf8 = 0xFFFFFFFF;
  char32_t value = kNotUtf8;
  std::size_t bytes = 1;
  bool operator==(const CodePoint&) const = default;
};
CodePoint first_code_point(std::string_view text);  // not of an empty one

// "0-3,8" for numbers in ascending order.
std::string number_ranges(std::span<const int> numbers);

// As a shell would take it for one word: in quotes if need be.
std::string shell_word(const std::string&);

// "SIGKILL" for 9.
std::string signal_name(int signo);

}  // namespace corro
