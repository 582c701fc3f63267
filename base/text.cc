#include "base/text.h"

#include <csignal>
#include <cstring>

namespace corro {

CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  // How many bytes its first one announces, and the least value that needs so many.
  const std::size_t bytes = byte(0) < 0xC2 ? 0 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (bytes == 0 || byte(0) > 0xF4 || text.size() < bytes) return {};
  char32_t value = byte(0) & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (value < kLeast[bytes] || value > 0x10FFFF || surrogate) return {};
  return {value, bytes};
}

std::string number_ranges(std::span<const int> numbers) {
  std::string out;
  for (std::size_t first = 0, next; first < numbers.size(); first = next) {
    for (next = first + 1; next < numbers.size() && numbers[next] == numbers[next - 1] + 1;) ++next;
    if (first > 0) out += ',';
    out += std::to_string(numbers[first]);
    if (next - first > 1) out += '-' + std::to_string(numbers[next - 1]);
  }
  return out;
}

std::string signal_name(int signo) {
  const char* abbreviation = ::sigabbrev_np(signo);
  return abbreviation ? std::string("SIG") + abbreviation : "signal " + std::to_string(signo);
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace corro
