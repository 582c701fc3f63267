#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "launcher/hosts/item.h"

namespace corro::launcher {

namespace {

constexpr std::size_t kGuessLimit = 100;  // bytes; longer ones do not help

// The ASCII character that word processors, chats and keyboards made this of; 0: none is left.
char plain(char32_t c) {
  if (c >= 0xFF01 && c <= 0xFF5E) return static_cast<char>(c - 0xFF01 + '!');  // full width
  if (c == 0x3000 || c == 0xA0 || c == '\t' || c == '\n' || c == '\r') return ' ';
  if ((c >= 0x2010 && c <= 0x2015) || c == 0x2212) return '-';
  return c > 0x7E || c < ' ' || c == '"' || c == '\'' || c == '`' ? '\0' : static_cast<char>(c);
}

std::string in_ascii(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (const char p = plain(c.value)) out += p;
    text.remove_prefix(c.bytes);
  }
  return out;
}

// No blanks in brackets or beside what parts words anyway.
std::string without_idle_blanks(std::string_view text) {
  constexpr std::string_view kParting = ":=@[], ";
  std::string out;
  bool in_brackets = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') in_brackets = true;
    if (text[i] == ']') in_brackets = false;
    const bool idle = out.empty() || i + 1 == text.size() || in_brackets ||
                      kParting.find(out.back()) != kParting.npos ||
                      kParting.find(text[i + 1]) != kParting.npos;
    if (text[i] != ' ' || !idle) out += text[i];
  }
  return out;
}

// "a slots=4" and "a=4" as "a:4".
std::string with_colon(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == text.npos) return std::string(text);
  auto name = text.substr(0, equals);
  const auto blank = name.find(' ');
  if (blank != name.npos) name = name.substr(0, blank);
  return std::string(name) + ":" + std::string(text.substr(equals + 1));
}

std::string with_digits(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos) return std::string(text);
  std::string out(text.substr(0, colon + 1));
  return out += in_digits(text.substr(colon + 1));
}

std::string with_commas(std::string_view text) {
  constexpr std::string_view kSeparators = ";| +&,";
  std::string out;
  for (const char c : text) {
    const bool parts = kSeparators.find(c) != kSeparators.npos;
    if (!parts)
      out += c;
    else if (!out.ends_with(','))
      out += ',';
  }
  return out;
}

std::vector<std::string> guesses(std::string_view item) {
  const std::string text = without_idle_blanks(in_ascii(item));
  std::vector<std::string> out = {with_digits(text), with_digits(with_colon(text))};
  const auto last = text.rfind(':');
  if (last != text.npos) {
    if (is_ipv6(text.substr(0, last)))
      out.push_back("[" + text.substr(0, last) + "]" + text.substr(last));
    if (is_ipv6(text)) out.push_back("[" + text + "]");
    const auto second = text.find(':', text.find(':') + 1);
    if (second != text.npos) out.push_back(text.substr(0, second));
    if (last + 1 == text.size()) out.push_back(text.substr(0, last));
    out.push_back(text.substr(0, last) + "]" + text.substr(last));
  }
  out.push_back(text + "]");
  out.push_back(with_commas(text));
  return out;
}

// A number alone could be a host, but nobody meant one.
bool is_likely(const Parsed<Item>& item) {
  return item && item->name.find_first_not_of("0123456789") != item->name.npos;
}

bool is_list(std::string_view text) {
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = end_of_item(text, at, ",");
    if (!is_likely(read_item(text.substr(at, end - at), at))) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace

std::string_view in_digits(std::string_view number) {
  constexpr std::array<std::string_view, 17> kWords = {
      "zero", "one", "two",    "three",  "four",     "five",     "six",     "seven",  "eight",
      "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"};
  constexpr std::array<std::string_view, 17> kDigits = {
      "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"};
  const auto word = std::find(kWords.begin(), kWords.end(), number);
  return word == kWords.end() ? number : kDigits[word - kWords.begin()];
}

std::string repaired(std::string_view item) {
  if (item.size() > kGuessLimit) return "";
  for (std::string& guess : guesses(item))
    if (guess != item && is_list(guess)) return std::move(guess);
  return "";
}

}  // namespace corro::launcher
