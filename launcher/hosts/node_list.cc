#include "launcher/hosts/node_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace corro::launcher {

namespace {

constexpr std::size_t kDigitsLimit = 18;  // what an int64_t holds

std::string digits_of(std::int64_t number, std::size_t width) {
  return fmt::format("{:0{}}", number, width);
}

Parsed<Unit> check_number(std::string_view text, std::size_t at) {
  if (text.empty()) return Fault{{at, 1}, "a number is missing in the brackets", ""};
  const auto bad = text.find_first_not_of("0123456789");
  if (bad != text.npos)
    return Fault{{at + bad, first_code_point(text.substr(bad)).bytes},
                 "brackets hold numbers and ranges of numbers, like '[01-16,20]'",
                 ""};
  if (text.size() > kDigitsLimit)
    return Fault{{at, text.size()},
                 fmt::format("a number in brackets has at most {} digits", kDigitsLimit),
                 ""};
  return Unit{};
}

// "7" or "01-16".
Parsed<Range> parse_range(std::string_view text, std::size_t at) {
  const auto dash = text.find('-');
  const auto first = text.substr(0, dash);
  const auto last = dash == text.npos ? first : text.substr(dash + 1);
  const auto last_at = dash == text.npos ? at : at + dash + 1;
  if (auto ok = check_number(first, at); !ok) return ok.error();
  if (auto ok = check_number(last, last_at); !ok) return ok.error();

  const Range range{*parse_int(first), *parse_int(last), first.size()};
  if (range.last < range.first)
    return Fault{{at, text.size()},
                 "a range runs from the smaller number to the larger",
                 fmt::format("Did you mean '{}-{}'?", last, first)};
  // Slurm would drop the zeros, which nobody who wrote them wants.
  if (last.starts_with('0') && last.size() > first.size())
    return Fault{{at, text.size()},
                 "both ends of a range are filled with zeros to the same width, or neither is",
                 fmt::format("Did you mean '{}-{}'?", digits_of(range.first, last.size()), last)};
  return range;
}

Parsed<std::vector<Range>> parse_ranges(std::string_view text, std::size_t at) {
  std::vector<Range> ranges;
  for (const auto part : split(text, ',')) {
    auto range = parse_range(part, at);
    if (!range) return range.error();
    ranges.push_back(*range);
    at += part.size() + 1;
  }
  return ranges;
}

// A name around its last number.
struct Numbered {
  std::string_view front, number, after;
  bool is_beside(const Numbered& other) const {
    return front == other.front && after == other.after && !number.empty() && !other.number.empty();
  }
};

Numbered split_number(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  const auto end = name.find_last_of(kDigits) + 1;
  const auto begin = name.substr(0, end).find_last_not_of(kDigits) + 1;
  const bool is_address = name.find(':') != name.npos;
  if (is_address || end - begin > kDigitsLimit) return {name, "", ""};
  return {name.substr(0, begin), name.substr(begin, end - begin), name.substr(end)};
}

// The ranges that the numbers make, in their order: "01-04,07".
std::string fold_numbers(std::span<const Numbered> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size();) {
    const auto first = names[i].number;
    auto next = *parse_int(first) + 1;
    std::size_t end = i + 1;
    while (end < names.size() && names[end].number == digits_of(next, first.size())) ++end, ++next;
    if (!out.empty()) out += ',';
    out += first;
    if (end - i > 1) out.append("-").append(names[end - 1].number);
    i = end;
  }
  return out;
}

}  // namespace

void append_host(std::string& to, std::string_view name) {
  const bool is_address = name.find(':') != name.npos;
  if (is_address) to += '[';
  to += name;
  if (is_address) to += ']';
}

Parsed<NamePattern> NamePattern::parse(std::string_view text, std::size_t at) {
  NamePattern pattern;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '[') {
      if (!is_name_byte(text[i])) return misplaced_character(text, i, at, "a host name");
      pattern.tail() += text[i++];
      continue;
    }
    const auto end = text.find(']', i);
    if (end == text.npos) return Fault{{at + i, 1}, "this bracket is not closed", ""};
    auto ranges = parse_ranges(text.substr(i + 1, end - i - 1), at + i + 1);
    if (!ranges) return ranges.error();
    pattern.add(std::move(*ranges));
    i = end + 1;
  }
  if (pattern.longest() > kNameLimit)
    return Fault{
        {at, text.size()}, fmt::format("a name has at most {} characters", kNameLimit), ""};
  return pattern;
}

// One number is no choice; so the brackets that are left at least double the names.
void NamePattern::add(std::vector<Range> ranges) {
  const Range& range = ranges[0];
  if (ranges.size() == 1 && range.first == range.last)
    tail() += digits_of(range.first, range.width);
  else
    parts_.push_back({std::move(ranges), ""});
}

std::size_t NamePattern::longest() const {
  std::size_t n = front_.size();
  for (const Part& part : parts_) {
    std::size_t digits = 0;
    for (const Range& range : part.ranges)
      digits = std::max(digits, digits_of(range.last, range.width).size());
    n += digits + part.after.size();
  }
  return n;
}

std::int64_t NamePattern::count(std::int64_t limit) const {
  std::int64_t product = 1;
  for (const Part& part : parts_) {
    std::int64_t sum = 0;
    for (const Range& range : part.ranges) {
      const auto n = range.last - range.first + 1;
      if (n > limit || (sum += n) > limit) return limit + 1;
    }
    if ((product *= sum) > limit) return limit + 1;
  }
  return product;
}

std::vector<std::string> NamePattern::names() const {
  std::vector<std::string> out;
  std::string front = front_;
  add_names(front, 0, out);
  return out;
}

void NamePattern::add_names(std::string& front, std::size_t part,
                            std::vector<std::string>& to) const {
  if (part == parts_.size()) return to.push_back(front);
  const auto length = front.size();
  for (const Range& range : parts_[part].ranges)
    for (auto number = range.first; number <= range.last; ++number) {
      front.append(digits_of(number, range.width)).append(parts_[part].after);
      add_names(front, part + 1, to);
      front.resize(length);
    }
}

std::string fold_names(std::span<const std::string_view> names) {
  std::vector<Numbered> parts;
  for (const auto name : names) parts.push_back(split_number(name));
  std::string out;
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t end = i + 1;
    while (end < parts.size() && parts[end].is_beside(parts[i])) ++end;
    if (!out.empty()) out += ',';
    if (end - i == 1)
      append_host(out, names[i]);
    else
      out.append(parts[i].front)
          .append("[" + fold_numbers(std::span(parts).subspan(i, end - i)) + "]")
          .append(parts[i].after);
    i = end;
  }
  return out;
}

}  // namespace corro::launcher
