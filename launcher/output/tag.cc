#include "launcher/output/tag.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <optional>

namespace corro::launcher {

namespace {

constexpr std::array<std::string_view, 5> kFields = {"rank", "local_rank", "host", "stream",
                                                     "time"};

std::optional<std::size_t> index_of(std::string_view name) {
  for (std::size_t i = 0; i < kFields.size(); ++i)
    if (kFields[i] == name) return i;
  return std::nullopt;
}

// "Mon Jan 20 12:00:01 2020", as Horovod's asctime has it, in this machine's time zone.
std::string asctime_of(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const auto length = std::strftime(text.data(), text.size(), "%a %b %e %H:%M:%S %Y", &parts);
  return {text.data(), length};
}

}  // namespace

TagFormat::TagFormat()
    : pieces_{std::string("["), Field::rank, std::string("]<"), Field::stream, std::string(">:")} {}

Result<TagFormat> TagFormat::parse(const Text& text) {
  std::vector<Piece> pieces;
  std::string plain;
  const auto content = text.content;
  for (std::size_t at = 0; at < content.size();) {
    const char c = content[at];
    if (c != '{' && c != '}') {
      plain += c;
      ++at;
      continue;
    }
    if (at + 1 < content.size() && content[at + 1] == c) {
      plain += c;
      at += 2;
      continue;
    }
    const auto end = c == '{' ? content.find('}', at) : content.npos;
    if (end == content.npos)
      return complaint(text, {at, 1}, fmt::format("a single '{}'", c),
                       fmt::format("Write '{0}{0}' for the character itself.", c));
    const auto name = content.substr(at + 1, end - at - 1);
    const auto field = index_of(name);
    if (!field)
      return complaint(text, {at, end + 1 - at}, fmt::format("there is no '{}'", name),
                       "There are {rank}, {local_rank}, {host}, {stream} and {time}.");
    if (!plain.empty()) pieces.emplace_back(std::exchange(plain, {}));
    pieces.emplace_back(static_cast<Field>(*field));
    at = end + 1;
  }
  if (!plain.empty()) pieces.emplace_back(std::move(plain));
  return TagFormat(std::move(pieces));
}

TagFormat TagFormat::with_time() && {
  pieces_.insert(pieces_.begin(), Field::time);
  return std::move(*this);
}

bool TagFormat::has_time() const {
  for (const Piece& piece : pieces_)
    if (const auto* field = std::get_if<Field>(&piece); field && *field == Field::time) return true;
  return false;
}

std::string TagFormat::text_of(Field field, const Speaker& speaker, WallTime time) {
  switch (field) {
    case Field::rank:
      return std::to_string(speaker.rank);
    case Field::local_rank:
      return std::to_string(speaker.local_rank);
    case Field::host:
      return speaker.host;
    case Field::stream:
      return speaker.stream == Stream::out ? "stdout" : "stderr";
    case Field::time:
      return asctime_of(time);
  }
  return {};
}

std::string TagFormat::text(const Speaker& speaker, WallTime time) const {
  std::string out;
  for (const Piece& piece : pieces_)
    if (const auto* plain = std::get_if<std::string>(&piece))
      out += *plain;
    else
      out += text_of(std::get<Field>(piece), speaker, time);
  return out;
}

std::string colored(std::string_view tag, int rank) {
  constexpr int kColors = 6;  // red to cyan; neither black nor white, whatever the background
  return fmt::format("\x1b[{}m{}\x1b[0m", 31 + rank % kColors, tag);
}

}  // namespace corro::launcher
