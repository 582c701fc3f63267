#include "cli/config_file.h"

#include <fmt/format.h>
#include <strings.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/text.h"

namespace corro::cli {

namespace {

Spot spot_of(const YAML::Mark& mark, std::size_t length) {
  return {static_cast<std::size_t>(std::max(mark.pos, 0)), length};
}

std::vector<std::string_view> known_keys() {
  std::set<std::string_view> keys;
  for (const Option& option : options())
    if (!option.key.empty()) keys.insert(option.key);
  return {keys.begin(), keys.end()};
}

bool is_group(std::string_view name) {
  const auto keys = known_keys();
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) {
    return key.size() > name.size() && key.starts_with(name) && key[name.size()] == '.';
  });
}

// Where a second document begins.  YAML::LoadAll would tell, but does not come to an end with some
// that are malformed.
std::optional<std::size_t> second_document(std::string_view text) {
  bool begun = false;
  std::size_t at = 0;
  for (const auto line : split(text, '\n')) {
    const bool marker =
        line.starts_with("---") && (line.size() == 3 || line[3] == ' ' || line[3] == '\r');
    if (marker && begun) return at;
    const bool nothing = line.empty() || line[0] == '#' || line[0] == '%' || line[0] == '\r';
    begun = begun || !nothing;
    at += line.size() + 1;
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(const Text& text, std::span<const Given> said) : text_(text), said_(said) {}

  Result<ConfigFile> read() {
    if (const auto second = second_document(text_.content))
      return complaint(text_, {*second, 3}, "a second document begins here",
                       "A configuration file is one.");
    const YAML::Node top = YAML::Load(std::string(text_.content));
    if (top.IsNull()) return std::move(out_);
    if (!top.IsMap()) return complaint(text_, spot_of(top.Mark(), 1), "expected keys and values");
    for (const auto& entry : top)
      if (auto read = read_entry("", entry.first, entry.second); !read) return read.error();
    return std::move(out_);
  }

 private:
  using Node = YAML::Node;

  Result<Unit> read_entry(const std::string& group, const Node& name, const Node& value) {
    if (!name.IsScalar())
      return complaint(text_, spot_of(name.Mark(), 1), "a key must be a plain word");
    const std::string key = group + name.Scalar();
    if (group.empty() && is_group(key)) return read_group(key, value);
    const auto keys = known_keys();
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      note_unknown(key, name);
      return Unit{};
    }
    // Whatever the command line says otherwise is not looked at.
    const auto same = [&](const Given& given) { return given.option->key == key; };
    if (value.IsNull() || std::any_of(said_.begin(), said_.end(), same)) return Unit{};
    return read_value(key, value);
  }

  Result<Unit> read_group(const std::string& key, const Node& value) {
    if (value.IsNull()) return Unit{};
    if (!value.IsMap())
      return complaint(text_, spot_of(value.Mark(), 1),
                       fmt::format("'{}' has keys below it, not a value", key));
    for (const auto& entry : value)
      if (auto read = read_entry(key + ".", entry.first, entry.second); !read) return read;
    return Unit{};
  }

  Result<Unit> read_value(const std::string& key, const Node& value) {
    if (value.IsSequence() && key == "library_options.thread_affinity")
      return take(option("--thread-affinity"), value, joined(value));
    if (!value.IsScalar())
      return complaint(text_, spot_of(value.Mark(), 1), fmt::format("'{}' takes one value", key));
    if (key == "controller") return read_controller(value);
    for (const Option& each : options()) {
      if (each.key != key) continue;
      if (each.takes_value()) return take(each, value, as_written(each, value));
      bool flag = false;
      if (!YAML::convert<bool>::decode(value, flag))
        return wrong(value, fmt::format("'{}' is true or false", key));
      if (flag == each.key_means) out_.options.push_back({&each, {}});
    }
    return Unit{};
  }

  Result<Unit> read_controller(const Node& value) {
    const Option* controller = find_option("--" + value.Scalar());
    if (!controller || controller->key != "controller")
      return wrong(value, fmt::format("No such controller supported: {}", value.Scalar()));
    out_.options.push_back({controller, {}});
    return Unit{};
  }

  static std::string joined(const Node& list) {
    std::string out;
    for (const auto& each : list)
      out += (out.empty() ? "" : ",") + (each.IsScalar() ? each.Scalar() : "?");
    return out;
  }

  // As it would stand on the command line: numbers in decimal, choices in their own letters.
  static std::string as_written(const Option& what, const Node& value) {
    long long whole = 0;
    double number = 0;
    if (what.kind == Kind::integer && YAML::convert<long long>::decode(value, whole))
      return std::to_string(whole);
    if (what.kind == Kind::integer && YAML::convert<double>::decode(value, number) &&
        std::abs(number) < 1e15 && number == std::trunc(number))
      return fmt::format("{:.0f}", number);
    for (const auto choice : choices_of(what))
      if (choice.size() == value.Scalar().size() &&
          ::strncasecmp(choice.data(), value.Scalar().data(), choice.size()) == 0)
        return std::string(choice);
    return value.Scalar();
  }

  Result<Unit> take(const Option& what, const Node& value, std::string written) {
    const std::vector<std::string> values = {std::move(written)};
    if (const auto complaint = complaint_about(what, values)) return wrong(value, *complaint);
    out_.options.push_back({&what, values});
    return Unit{};
  }

  Error wrong(const Node& value, const std::string& what) {
    const std::size_t length = value.IsScalar() ? value.Scalar().size() : 1;
    return complaint(text_, spot_of(value.Mark(), length), what);
  }

  void note_unknown(const std::string& key, const Node& name) {
    constexpr std::size_t kNotes = 20;  // who has more of them has a file for something else
    if (out_.notes.size() > kNotes) return;
    if (out_.notes.size() == kNotes) return out_.notes.push_back(text_.name + ": and so on");
    auto keys = known_keys();
    for (const auto known : known_keys())
      if (const auto dot = known.find('.'); dot != known.npos) keys.push_back(known.substr(0, dot));
    const auto meant = nearest(key, keys);
    out_.notes.push_back(
        fmt::format("{}:{}: nobody knows the key '{}'{}", text_.name, name.Mark().line + 1, key,
                    meant.empty() ? "" : fmt::format("; '{}' may be meant", meant)));
  }

  const Text& text_;
  const std::span<const Given> said_;
  ConfigFile out_;
};

}  // namespace

Result<ConfigFile> read_config(const Text& text, std::span<const Given> said) try {
  if (text.content.size() > kConfigLimit)
    return Error(Errc::too_large,
                 fmt::format("{} is longer than {} KiB", text.name, kConfigLimit >> 10));
  return Reader(text, said).read();
} catch (const YAML::Exception& e) {
  return complaint(text, spot_of(e.mark, 1), e.msg);
}

}  // namespace corro::cli
