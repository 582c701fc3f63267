#include "cli/complete.h"

#include <fmt/format.h>
#include <glob.h>
#include <net/if.h>
#include <strings.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/options.h"
#include "cli/subcommands.h"

namespace corro::cli {

namespace {

using Then = Completion::Then;
using Names = std::vector<std::string>;

constexpr int kIncludesFollowed = 4;  // files that ssh's configuration includes, one in the other

// A shell would have put the home in its place.
std::string with_home(std::string_view path, const Surroundings& around) {
  const auto home = path.starts_with("~/") ? around.variable("HOME") : std::nullopt;
  return home ? *home + std::string(path.substr(1)) : std::string(path);
}

// Someone waits for the answer: what may keep us waiting, such as a pipe, is not read.
Result<std::string> content_of(const std::string& path, const Surroundings& around) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  using enum std::filesystem::file_type;
  if (type == fifo || type == character || type == socket)
    return Error(Errc::unsupported, path + " is no file");
  return around.read_file(path);
}

Names files_like(const std::string& pattern) {
  if (pattern.find_first_of("*?[") == pattern.npos) return {pattern};
  Names paths;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

// The names that stand after Host in ssh's configuration; a pattern is no name.
class SshHosts {
 public:
  SshHosts(std::string home, const Surroundings& around)
      : folder_(std::move(home) + "/.ssh/"), around_(around) {}

  Names all() {
    read(folder_ + "config", 0);
    return std::move(names_);
  }

 private:
  void read(const std::string& path, int depth) {
    if (depth > kIncludesFollowed) return;
    const auto content = content_of(path, around_);
    std::istringstream lines(content ? *content : "");
    for (std::string line; std::getline(lines, line);) read_line(std::move(line), depth);
  }

  // "Host a b", "Host=a", "Include config.d/*", in capitals or not, in quotes or not.
  void read_line(std::string line, int depth) {
    std::erase(line, '"');
    if (const auto equals = line.find('='); equals != line.npos) line[equals] = ' ';
    std::istringstream words(line);
    std::string keyword;
    words >> keyword;
    for (std::string word; words >> word && !word.starts_with('#');) {
      if (::strcasecmp(keyword.c_str(), "host") == 0 && word.find_first_of("*?!") == word.npos)
        names_.push_back(word);
      if (::strcasecmp(keyword.c_str(), "include") == 0) include(with_home(word, around_), depth);
    }
  }

  void include(const std::string& path, int depth) {
    for (const auto& each : files_like(path.starts_with('/') ? path : folder_ + path))
      read(each, depth + 1);
  }

  const std::string folder_;
  const Surroundings& around_;
  Names names_;
};

// What the line gives this option, by whatever name.
std::optional<std::string> given(std::span<const std::string> words, std::string_view name) {
  auto read = read_arguments(words);
  // The last of them may be an option whose value is just being typed.
  if (!read && !words.empty()) read = read_arguments(words.first(words.size() - 1));
  if (!read) return std::nullopt;
  std::optional<std::string> value;
  for (const Given& each : read->options)
    if (each.option->name() == name) value = each.values.front();
  return value;
}

std::vector<launcher::HostSpec> hosts_on_line(std::span<const std::string> words,
                                              const Surroundings& around) {
  Result<launcher::HostList> list = launcher::HostList{};
  if (const auto path = given(words, "--hostfile")) {
    if (const auto content = content_of(with_home(*path, around), around))
      list = launcher::parse_host_file({*path, *content});
  } else if (const auto text = given(words, "--hosts")) {
    list = launcher::parse_hosts({"-H", *text},
                                 [&](const std::string& file) { return content_of(file, around); });
  }
  return list ? list->hosts : std::vector<launcher::HostSpec>();
}

// Those that the line names; else those that the user can reach.
Names known_hosts(std::span<const std::string> words, const Surroundings& around) {
  Names names;
  for (const launcher::HostSpec& host : hosts_on_line(words, around)) {
    const bool is_ipv6 = host.name.find(':') != host.name.npos;
    names.push_back(is_ipv6 ? fmt::format("[{}]", host.name) : host.name);
  }
  if (!names.empty()) return names;
  if (const auto home = around.variable("HOME")) names = SshHosts(*home, around).all();
  names.insert(names.begin(), "localhost");
  return names;
}

Names interface_names() {
  Names names;
  const std::unique_ptr<struct if_nameindex, void (*)(struct if_nameindex*)> all(
      ::if_nameindex(), ::if_freenameindex);
  for (const auto* each = all.get(); each && each->if_index; ++each)
    names.emplace_back(each->if_name);
  return names;
}

// Those that go on from what is typed of the last part of a list.
void add_parts(const Names& names, std::string_view typed, std::string_view separators,
               std::string_view after, Completion& to) {
  const auto cut = typed.find_last_of(separators);
  const auto before = cut == typed.npos ? std::string_view() : typed.substr(0, cut + 1);
  const auto part = typed.substr(before.size());
  std::set<std::string> seen;
  for (const std::string& name : names)
    if (name.starts_with(part) && seen.insert(name).second)
      to.candidates.push_back({fmt::format("{}{}{}{}", to.prefix, before, name, after), ""});
}

// "w1@w2:0,2": a comma parts slots.
void add_chosen_hosts(std::string_view typed, const Names& hosts, Completion& to) {
  to.goes_on = true;
  add_parts(hosts, typed, "@", "", to);
}

// "a:4,user@b:2,@file"
void add_listed_hosts(std::string_view typed, const Names& hosts, Completion& to) {
  const auto item = typed.substr(typed.find_last_of(',') + 1);
  if (item.starts_with('@')) {
    to.then = Then::files;
    to.prefix += typed.substr(0, typed.size() - item.size() + 1);
    return;
  }
  to.goes_on = true;
  add_parts(hosts, typed, ",@", ":", to);
}

void add_choices(const std::vector<std::string_view>& choices, std::string_view typed,
                 Completion& to) {
  for (const auto choice : choices)
    if (choice.starts_with(typed))
      to.candidates.push_back({fmt::format("{}{}", to.prefix, choice), ""});
}

Completion value_of(const Option& option, std::string prefix, std::string_view typed,
                    std::span<const std::string> before, const Surroundings& around) {
  Completion out{.prefix = std::move(prefix)};
  switch (option.kind) {
    case Kind::file:
      out.then = Then::files;
      break;
    case Kind::folder:
      out.then = Then::folders;
      break;
    case Kind::program:
      out.then = Then::programs;
      break;
    case Kind::choice:
      add_choices(choices_of(option), typed, out);
      break;
    case Kind::hosts:
      if (option.name() == "--hosts")
        add_listed_hosts(typed, known_hosts(before, around), out);
      else
        add_chosen_hosts(typed, known_hosts(before, around), out);
      break;
    case Kind::interfaces:
      add_parts(interface_names(), typed, ",", "", out);
      break;
    default:
      break;
  }
  return out;
}

// The part of a word that is an option's name, if its value is glued to it: "--hosts=", "-H".
std::size_t name_with_glue(std::string_view typed) {
  const auto equals = typed.find('=');
  if (equals != typed.npos) return equals + 1;
  return !typed.starts_with("--") && typed.size() > 2 ? 2 : 0;
}

Completion options_like(std::string_view typed) {
  Completion out;
  for (const Option& option : options())
    for (const auto name : names_of(option))
      if (!option.hidden && name.starts_with(typed))
        out.candidates.push_back({std::string(name), std::string(option.help)});
  return out;
}

// A value that is glued to its option's name, which may be cut short.
std::optional<Completion> glued_value(const std::string& typed, std::span<const std::string> before,
                                      const Surroundings& around) {
  const auto glue = name_with_glue(typed);
  if (glue == 0 || !typed.starts_with('-')) return std::nullopt;
  const std::string name = typed.substr(0, typed[glue - 1] == '=' ? glue - 1 : glue);
  const Option* option = standing_after(std::span(&name, 1)).wants_value;
  if (!option || option->arity != 1) return std::nullopt;
  return value_of(*option, typed.substr(0, glue), std::string_view(typed).substr(glue), before,
                  around);
}

Completion first_word(std::string_view typed) {
  Completion out{.then = Then::programs};
  for (const Subcommand& each : subcommands())
    if (each.name.starts_with(typed))
      out.candidates.push_back({std::string(each.name), std::string(each.help)});
  return out;
}

Completion word_of(const Subcommand& subcommand, std::string_view typed,
                   std::span<const std::string> before, const Surroundings& around) {
  Completion out;
  for (const Option& option : subcommand.options) {
    const auto glue = fmt::format("{}=", option.name());
    const bool is_glued = option.takes_value() && typed.starts_with(glue);
    if (!is_glued && (!option.takes_value() || before.back() != option.name())) continue;
    if (is_glued) out.prefix = glue;
    add_choices(choices_of(option), typed.substr(out.prefix.size()), out);
    return out;
  }
  if (!typed.starts_with('-')) {
    add_listed_hosts(typed, known_hosts({}, around), out);
    return out;
  }
  for (const Option& option : subcommand.options)
    if (option.name().starts_with(typed))
      out.candidates.push_back({std::string(option.name()), std::string(option.help)});
  return out;
}

std::string_view name_of(Then then) {
  switch (then) {
    case Then::nothing:
      return "nothing";
    case Then::files:
      return "files";
    case Then::folders:
      return "folders";
    case Then::programs:
      return "programs";
    case Then::command:
      return "command";
  }
  return {};
}

}  // namespace

Completion complete(const std::vector<std::string>& words, const Surroundings& around) {
  const std::string typed = words.empty() ? "" : words.back();
  std::span before(words.data(), words.empty() ? 0 : words.size() - 1);
  if (!asks_for_doctor(before)) {
    if (const Subcommand* subcommand = subcommand_of(before))
      return word_of(*subcommand, typed, before, around);
    if (before.empty() && !typed.starts_with('-')) return first_word(typed);
  }
  const std::size_t skipped = asks_for_doctor(before) ? 1 : 0;
  before = before.subspan(skipped);
  const Standing standing = standing_after(before);
  if (standing.command) return {.then = Then::command, .command = *standing.command + skipped};
  if (standing.wants_value) return value_of(*standing.wants_value, "", typed, before, around);
  if (!typed.starts_with('-')) return {.then = Then::programs};
  auto out = options_like(typed);
  if (!out.candidates.empty()) return out;
  return glued_value(typed, before, around).value_or(std::move(out));
}

std::string print_completion(const Completion& completion) {
  std::string out = fmt::format("{} {} {} {}\n", name_of(completion.then), completion.command,
                                completion.goes_on ? "nospace" : "space", completion.prefix);
  for (const auto& [text, help] : completion.candidates) out += fmt::format("{}\t{}\n", text, help);
  return out;
}

}  // namespace corro::cli
