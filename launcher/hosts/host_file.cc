#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/text.h"
#include "launcher/hosts/gathering.h"
#include "launcher/hosts/hosts.h"

namespace corro::launcher {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

enum class Meaning { slots, max_slots, user, nothing };

struct Key {
  std::string_view name;
  Meaning meaning;
};

// Open MPI's, which has most, and Hydra's.
constexpr Key kKeys[] = {
    {"slots", Meaning::slots},
    {"cpu", Meaning::slots},
    {"count", Meaning::slots},
    {"max_slots", Meaning::max_slots},
    {"max-slots", Meaning::max_slots},
    {"slots_max", Meaning::max_slots},
    {"slots-max", Meaning::max_slots},
    {"max_cpu", Meaning::max_slots},
    {"max-cpu", Meaning::max_slots},
    {"cpu_max", Meaning::max_slots},
    {"cpu-max", Meaning::max_slots},
    {"max_count", Meaning::max_slots},
    {"max-count", Meaning::max_slots},
    {"count_max", Meaning::max_slots},
    {"count-max", Meaning::max_slots},
    {"user", Meaning::user},
    {"username", Meaning::user},
    {"user_name", Meaning::user},
    {"user-name", Meaning::user},
    {"binding", Meaning::nothing},
    {"ifname", Meaning::nothing},
    {"maxprocs", Meaning::nothing},
    {"port", Meaning::nothing},
    {"boards", Meaning::nothing},
    {"sockets", Meaning::nothing},
    {"sockets_per_board", Meaning::nothing},
    {"sockets-per-board", Meaning::nothing},
    {"cores", Meaning::nothing},
    {"cores_per_socket", Meaning::nothing},
    {"cores-per-socket", Meaning::nothing},
};

std::string_view nearest_key(std::string_view word) {
  std::array<std::string_view, std::size(kKeys)> names;
  std::transform(std::begin(kKeys), std::end(kKeys), names.begin(),
                 [](const Key& key) { return key.name; });
  return nearest(word, names);
}

// A part of the text and where it stands.
struct Word {
  std::string_view text;
  std::size_t at = 0;
  Spot spot() const { return {at, text.size()}; }
};

// What stands behind the hosts of a line.
struct Settings {
  int slots = 0, max_slots = 0;
  Word slots_word, user;
  std::size_t max_key = 0;  // which of kKeys max_slots was
};

Fault unknown_key(const Word& key, const Word& value) {
  const auto known = nearest_key(key.text);
  return {key.spot(), fmt::format("'{}' is not known here", key.text),
          known.empty() ? "A host may have 'slots=', 'max_slots=' and 'user='."
                        : fmt::format("Did you mean '{}={}'?", known, value.text)};
}

Fault stray_word(const Word& word) {
  const auto known = nearest_key(word.text);
  if (parse_int(word.text))
    return {word.spot(), "what follows the host has a name",
            fmt::format("Did you mean 'slots={}'?", word.text)};
  return {word.spot(), "expected 'slots=' and a number, or the end of the line",
          known.empty() ? "Each host has a line of its own."
                        : fmt::format("Did you mean '{}='?", known)};
}

// Reads line after line; a position is one in the whole text.
class HostFile {
 public:
  explicit HostFile(const Text& text) : text_{text.name, text.content, true} {}

  Result<HostList> read();

 private:
  Parsed<Unit> read_lines();
  Parsed<Unit> read_line();
  Parsed<Unit> read_items();
  Parsed<Unit> read_item_until(std::size_t end);
  Parsed<Unit> read_setting();
  Parsed<Unit> set(std::size_t key, const Word&, const Word& value);
  Parsed<Unit> set_slots(int& number, const Word& key, const Word& value);
  Parsed<Unit> add_item(Item&);
  Parsed<Unit> check_comment();

  void skip_blanks() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }
  // At the end of what counts in this line.
  bool at_end() const {
    return at_ == line_.size() || line_[at_] == '#' || line_.substr(at_).starts_with("//");
  }
  Word word_until(std::string_view stops) {
    const auto from = at_;
    while (at_ < line_.size() && stops.find(line_[at_]) == stops.npos) ++at_;
    return {line_.substr(from, at_ - from), from};
  }
  void note_ignored(std::size_t key);
  std::vector<std::string> notes() const;

  const Text text_;
  std::string_view line_;  // the text up to the end of the line
  std::size_t at_ = 0, number_ = 0;
  std::vector<Item> items_;  // of the line
  Settings settings_;        // of the line
  bool all_bare_ = true;     // no line says how many slots
  Gathering all_;

  struct Ignored {
    std::size_t first_line = 0, times = 0;
  };
  std::array<Ignored, std::size(kKeys)> ignored_{};
};

Result<HostList> HostFile::read() {
  if (text_.content.size() > kHostTextLimit)
    return Error(Errc::invalid_input, text_.name + ": this is too long for a host file");
  if (auto ok = read_lines(); !ok) return ok.error().in(text_);
  if (all_.hosts().empty()) return Error(Errc::invalid_input, text_.name + ": no host is named");
  // A machine file has a line for each slot.
  if (all_bare_ && all_.has_twice())
    for (HostSpec& host : all_.hosts()) host.slots = std::max(host.slots, 1);
  return HostList{std::move(all_.hosts()), notes()};
}

Parsed<Unit> HostFile::read_lines() {
  const auto content = text_.content;
  if (content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF"))
    return Fault{{0, 2}, "this is UTF-16; a host file is UTF-8", ""};
  if (content.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  all_.expect(content.size() / 32);
  while (at_ < content.size()) {
    const auto end = std::min(content.find('\n', at_), content.size());
    const bool has_return = end > at_ && content[end - 1] == '\r';
    line_ = content.substr(0, end - has_return);
    ++number_;
    if (auto ok = read_line(); !ok) return ok;
    at_ = end + 1;
  }
  return Unit{};
}

Parsed<Unit> HostFile::read_line() {
  skip_blanks();
  if (at_end()) return check_comment();
  items_.clear();
  settings_ = {};
  if (auto ok = read_items(); !ok) return ok;
  while (!at_end())
    if (auto ok = read_setting(); !ok) return ok;
  for (Item& item : items_)
    if (auto ok = add_item(item); !ok) return ok;
  return check_comment();
}

// The hosts, up to the first blank that no comma stands before.
Parsed<Unit> HostFile::read_items() {
  for (;;) {
    const auto end = end_of_item(line_, at_, ", \t#");
    if (auto ok = read_item_until(end); !ok) return ok;
    if (at_ == line_.size() || line_[at_] != ',') return Unit{};
    ++at_;
    skip_blanks();
    if (at_end())
      return Fault{{end, 1}, "a host is missing after the last comma", "Leave the comma out."};
  }
}

Parsed<Unit> HostFile::read_item_until(std::size_t end) {
  const auto from = at_;
  const auto text = line_.substr(from, end - from);
  if (text.empty()) return Fault{{from, 1}, "a host is missing before this comma", ""};
  if (text[0] == '@') return Fault{{from, text.size()}, "a host file cannot name another one", ""};
  at_ = end;
  skip_blanks();
  // Open MPI has no brackets; where a setting follows, it is clear where the address ends.
  const bool is_followed = !at_end() && line_[at_] != ',';
  auto item = parse_item(text, from, is_followed ? AddressStyle::bare : AddressStyle::in_brackets);
  if (!item) return item.error();
  items_.push_back(std::move(*item));
  return Unit{};
}

// "slots=4", with blanks or without.
Parsed<Unit> HostFile::read_setting() {
  const Word key = word_until(" \t=#");
  skip_blanks();
  if (at_end() || line_[at_] != '=') return stray_word(key);
  ++at_;
  skip_blanks();
  const Word value = word_until(" \t#");
  skip_blanks();
  const auto known = std::find_if(std::begin(kKeys), std::end(kKeys),
                                  [&](const Key& k) { return k.name == key.text; });
  if (known == std::end(kKeys)) return unknown_key(key, value);
  if (value.text.empty())
    return Fault{{value.at, 1}, fmt::format("a value is missing after '{}='", key.text), ""};
  return set(known - kKeys, key, value);
}

Parsed<Unit> HostFile::set(std::size_t key, const Word& word, const Word& value) {
  switch (kKeys[key].meaning) {
    case Meaning::slots:
      settings_.slots_word = value;
      return set_slots(settings_.slots, word, value);
    case Meaning::max_slots:
      settings_.max_key = key;
      return set_slots(settings_.max_slots, word, value);
    case Meaning::user:
      settings_.user = value;
      return check_user(value.text, value.at);
    case Meaning::nothing:
      note_ignored(key);
  }
  return Unit{};
}

Parsed<Unit> HostFile::set_slots(int& number, const Word& key, const Word& value) {
  if (number != 0)
    return Fault{{key.at, value.at + value.text.size() - key.at}, "this was said before", ""};
  const auto slots = parse_slots(value.text, value.at);
  if (slots) {
    number = *slots;
    return Unit{};
  }
  Fault fault = slots.error();
  const auto word = value.text.substr(0, value.text.find_last_not_of(",;") + 1);
  if (const auto digits = in_digits(word); digits != value.text && parse_int(digits))
    fault.hint = fmt::format("Did you mean '{}={}'?", key.text, digits);
  return fault;
}

Parsed<Unit> HostFile::add_item(Item& item) {
  const auto& [slots, max_slots, slots_word, user, max_key] = settings_;
  if (item.slots != 0 && slots != 0)
    return Fault{slots_word.spot(), fmt::format("':{}' gave the slots before", item.slots), ""};
  if (!item.user.empty() && !user.text.empty() && item.user != user.text)
    return Fault{user.spot(), fmt::format("'{}@' gave the user before", item.user), ""};
  if (item.slots == 0) item.slots = slots;
  if (item.user.empty()) item.user = user.text;
  if (max_slots != 0 && item.slots > max_slots)
    return Fault{slots != 0 ? slots_word.spot() : item.spot,
                 fmt::format("these are more slots than 'max_slots={}' allows", max_slots), ""};
  if (max_slots != 0 && item.slots == 0) note_ignored(max_key);
  all_bare_ = all_bare_ && item.slots == 0;
  return all_.add(item);
}

Parsed<Unit> HostFile::check_comment() {
  while (at_ < line_.size()) {
    const CodePoint c = first_code_point(line_.substr(at_));
    if (c.value == 0 || c.value == CodePoint::kNotUtf8)
      return misplaced_character(line_, at_, 0, "a host file");
    at_ += c.bytes;
  }
  return Unit{};
}

void HostFile::note_ignored(std::size_t key) {
  Ignored& ignored = ignored_[key];
  if (ignored.times++ == 0) ignored.first_line = number_;
}

std::vector<std::string> HostFile::notes() const {
  std::vector<std::string> out;
  for (const std::string& note : all_.notes()) out.push_back(text_.name + ": " + note);
  for (std::size_t key = 0; key < ignored_.size(); ++key) {
    const auto [first_line, times] = ignored_[key];
    if (times == 0) continue;
    out.push_back(
        fmt::format("{}:{}: '{}=' has no effect here", text_.name, first_line, kKeys[key].name));
    if (times > 1) out.back() += fmt::format(" ({} times)", times);
  }
  return out;
}

}  // namespace

Result<HostList> parse_host_file(const Text& text) {
  return HostFile(text).read();
}

}  // namespace corro::launcher
