#include "base/complaint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/text.h"

namespace corro {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kCut = "...";
constexpr std::size_t kColumnsBefore = 40;  // of the spot, in a line that is cut
constexpr std::size_t kColumns = 80;

struct Block {
  char32_t first, last;
};

template <std::size_t N>
bool in(const Block (&blocks)[N], char32_t c) {
  return std::any_of(std::begin(blocks), std::end(blocks),
                     [&](const Block& b) { return c >= b.first && c <= b.last; });
}

// Controls, what turns the direction of writing, and what has no width of its own.
bool is_shown(char32_t c) {
  constexpr Block kHidden[] = {
      {0, 0x1F},        {0x7F, 0x9F},     {0xAD, 0xAD},       {0x300, 0x36F},   {0x61C, 0x61C},
      {0x180E, 0x180E}, {0x200B, 0x200F}, {0x2028, 0x202E},   {0x2060, 0x206F}, {0xFE00, 0xFE0F},
      {0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFB}, {0xE0000, 0xE0FFF}, {0x110000, ~0u}};
  return !in(kHidden, c);
}

// East Asian letters and pictures take two columns of a terminal.
std::size_t columns_of(char32_t c) {
  constexpr Block kWide[] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                             {0xF900, 0xFAFF}, {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},
                             {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
  return in(kWide, c) ? 2 : 1;
}

struct Glyph {
  std::string_view text;
  std::size_t bytes, columns;
};

Glyph first_glyph(std::string_view text) {
  if (text[0] == '\t') return {" ", 1, 1};
  const CodePoint c = first_code_point(text);
  if (!is_shown(c.value)) return {"?", c.bytes, 1};
  return {text.substr(0, c.bytes), c.bytes, columns_of(c.value)};
}

std::string shown(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Glyph glyph = first_glyph(text);
    out += glyph.text;
    text.remove_prefix(glyph.bytes);
  }
  return out;
}

// The line that a spot is in, and the spot within the line.
struct Line {
  std::string_view text;
  std::size_t number = 1;
  Spot spot;
};

Line line_of(const Text& text, Spot spot) {
  const std::string_view all = text.content;
  spot.at = std::min(spot.at, all.size());
  const auto before = all.substr(0, spot.at);
  std::size_t from = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto number = 1 + std::count(before.begin(), before.end(), '\n');
  if (from == 0 && all.starts_with(kByteOrderMark) && spot.at >= kByteOrderMark.size())
    from = kByteOrderMark.size();
  auto line = all.substr(from, all.find('\n', spot.at) - from);
  if (line.ends_with('\r')) line.remove_suffix(1);
  spot.at = std::min(spot.at - from, line.size());
  spot.length = std::min(std::max<std::size_t>(spot.length, 1), line.size() - spot.at);
  return {line, static_cast<std::size_t>(number), spot};
}

std::size_t characters_in(std::string_view text) {
  std::size_t n = 0;
  for (; !text.empty(); ++n) text.remove_prefix(first_code_point(text).bytes);
  return n;
}

// Where to begin to show a line, so that the spot is in sight.
std::size_t window(const Line& line) {
  if (line.text.size() <= kColumns || line.spot.at <= kColumnsBefore) return 0;
  std::size_t from = line.spot.at - kColumnsBefore;
  while (from < line.spot.at && (line.text[from] & 0xC0) == 0x80) ++from;
  return from;
}

// The line, and carets under the spot.
std::string picture(const Line& line) {
  std::size_t at = window(line);
  std::string out = "  ", carets = "  ";
  const auto add = [&](const Glyph& glyph, char under) {
    out += glyph.text;
    carets.append(glyph.columns, under);
  };
  if (at > 0) add({kCut, 0, kCut.size()}, ' ');
  while (at < line.text.size() && carets.size() < kColumns) {
    const Glyph glyph = first_glyph(line.text.substr(at));
    add(glyph, at >= line.spot.at && at < line.spot.at + line.spot.length ? '~' : ' ');
    at += glyph.bytes;
  }
  if (at < line.text.size()) out += kCut;
  const auto first = std::min(carets.find('~'), carets.size());
  carets.resize(std::max(carets.find_last_of('~') + 1, first));
  if (first == carets.size()) carets += '~';  // at the end of the line something is missing
  carets[first] = '^';
  return out + "\n" + carets;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr std::size_t kWordLimit = 64;
constexpr std::size_t kFarthest = 3;

// How many letters to insert, drop, replace or swap to get from a to b; `limit` + 1 if more.  Cells
// further than that from the diagonal need not be looked at.
std::size_t distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > limit) return limit + 1;
  std::array<std::array<std::size_t, kWordLimit + 2>, 3> rows{};
  const auto row = [&](std::size_t i) -> auto& {
    return rows[i % 3];
  };
  const auto same = [&](std::size_t i, std::size_t j) {
    return lower(a[i - 1]) == lower(b[j - 1]);
  };
  std::iota(row(0).begin(), row(0).end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    const std::size_t from = i > limit ? i - limit : 1, to = std::min(b.size(), i + limit);
    row(i)[from - 1] = from == 1 ? i : limit + 1;
    row(i)[to + 1] = limit + 1;
    std::size_t least = row(i)[from - 1];
    for (std::size_t j = from; j <= to; ++j) {
      auto d = std::min({row(i - 1)[j] + 1, row(i)[j - 1] + 1, row(i - 1)[j - 1] + !same(i, j)});
      if (i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j))
        d = std::min(d, row(i - 2)[j - 2] + 1);
      row(i)[j] = d;
      least = std::min(least, d);
    }
    if (least > limit) return limit + 1;
  }
  return std::min(row(a.size())[b.size()], limit + 1);
}

}  // namespace

Error complaint(const Text& text, Spot spot, std::string_view what, std::string_view hint) {
  const Line line = line_of(text, spot);
  std::string out = shown(text.name);
  if (text.is_file || text.content.find('\n') != text.content.npos)
    out += fmt::format(":{}:{}", line.number, characters_in(line.text.substr(0, line.spot.at)) + 1);
  out += fmt::format(": {}\n{}", shown(what), picture(line));
  if (!hint.empty()) out += "\n  " + shown(hint);
  return {Errc::invalid_input, std::move(out)};
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  if (word.empty() || word.size() > kWordLimit) return best;
  std::size_t least = kFarthest + 1;
  for (const auto candidate : candidates) {
    if (candidate.size() > kWordLimit || least == 0) continue;
    const auto limit = std::min(least - 1, std::max(word.size(), candidate.size()) / 3);
    const auto d = distance(word, candidate, limit);
    if (d > limit) continue;
    best = candidate;
    least = d;
  }
  return best;
}

}  // namespace corro
