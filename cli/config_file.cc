#include "cli/config_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

namespace kolo {

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

class Reader {
 public:
  explicit Reader(const Text& text) : text_(text) {}

  Result<ConfigFile> read() {
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
    return value.IsNull() ? Unit{} : read_value(key, value);
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
    if (!value.IsScalar())
      return complaint(text_, spot_of(value.Mark(), 1), fmt::format("'{}' takes one value", key));
    if (key == "controller") return read_controller(value);
    for (const Option& option : options()) {
      if (option.key != key) continue;
      if (option.takes_value()) return take(option, value);
      bool flag = false;
      if (!YAML::convert<bool>::decode(value, flag))
        return wrong(value, fmt::format("'{}' is true or false", key));
      if (flag == option.key_means) out_.options.push_back({&option, {}});
    }
    return Unit{};
  }

  Result<Unit> read_controller(const Node& value) {
    const Option* option = find_option("--" + value.Scalar());
    if (!option || option->key != "controller")
      return wrong(value, fmt::format("No such controller supported: {}", value.Scalar()));
    out_.options.push_back({option, {}});
    return Unit{};
  }

  Result<Unit> take(const Option& option, const Node& value) {
    const std::vector<std::string> values = {value.Scalar()};
    if (const auto complaint = complaint_about(option, values)) return wrong(value, *complaint);
    out_.options.push_back({&option, values});
    return Unit{};
  }

  Error wrong(const Node& value, const std::string& what) {
    return complaint(text_, spot_of(value.Mark(), value.Scalar().size()), what);
  }

  void note_unknown(const std::string& key, const Node& name) {
    constexpr std::size_t kNotes = 20;  // who has more of them has a file for something else
    if (out_.notes.size() > kNotes) return;
    if (out_.notes.size() == kNotes) return out_.notes.push_back(text_.name + ": and so on");
    const auto keys = known_keys();
    const auto meant = nearest(key, keys);
    out_.notes.push_back(
        fmt::format("{}:{}: nobody knows the key '{}'{}", text_.name, name.Mark().line + 1, key,
                    meant.empty() ? "" : fmt::format("; '{}' may be meant", meant)));
  }

  const Text& text_;
  ConfigFile out_;
};

}  // namespace

Result<ConfigFile> read_config(const Text& text) try {
  if (text.content.size() > kConfigLimit)
    return Error(Errc::too_large,
                 fmt::format("{} is longer than {} KiB", text.name, kConfigLimit >> 10));
  return Reader(text).read();
} catch (const YAML::Exception& e) {
  return complaint(text, spot_of(e.mark, 1), e.msg);
}

}  // namespace kolo
