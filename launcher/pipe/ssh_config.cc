#include "launcher/pipe/ssh_config.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace corro::launcher {

namespace {

constexpr int kDeepestInclude = 16;  // as in ssh
constexpr int kSshPort = 22;

using Words = std::vector<std::string>;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Words end at blanks, unless these are quoted.  A keyword may be followed by '='.  A word that
// begins with '#' begins a comment.
Words words_of(std::string_view line) {
  Words out;
  std::size_t at = 0;
  const auto is_blank = [&](char c) {
    return c == ' ' || c == '\t' || c == '\r' || (c == '=' && out.size() <= 1);
  };
  for (;;) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size() || line[at] == '#') return out;
    std::string word;
    bool quoted = false;
    for (; at < line.size() &&
           (quoted || !is_blank(line[at]) || (out.size() == 1 && line[at] == '='));
         ++at) {
      if (line[at] == '"')
        quoted = !quoted;
      else
        word += line[at];
    }
    out.push_back(std::move(word));
  }
}

// The rest of the line after its keyword, as it stands: a command.
std::string rest_of(std::string_view line) {
  const auto is_sign = [](char c) { return c == ' ' || c == '\t' || c == '='; };
  std::size_t at = 0;
  while (at < line.size() && is_sign(line[at])) ++at;
  while (at < line.size() && !is_sign(line[at])) ++at;
  while (at < line.size() && is_sign(line[at])) ++at;
  std::string rest(line.substr(at));
  while (!rest.empty() && (rest.back() == '\r' || rest.back() == ' ')) rest.pop_back();
  return rest;
}

// '*' and '?', without going back more than to the last star.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] == text[t] && pattern[p] != '*'))) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

// One that is negated and fits decides against all.
template <class Patterns>
bool matches_any(const Patterns& patterns, const std::string& text) {
  bool found = false;
  for (const std::string_view pattern : patterns) {
    if (pattern.starts_with('!')) {
      if (matches(pattern.substr(1), text)) return false;
    } else {
      found = found || matches(pattern, text);
    }
  }
  return found;
}

template <class T>
void set_once(T& field, T value) {
  if (field == T{}) field = std::move(value);
}

int positive(const std::string& text) {
  const auto number = parse_int(text);
  return number && *number > 0 && *number < 1'000'000 ? static_cast<int>(*number) : 0;
}

class Reader {
 public:
  Reader(const std::string& host, const std::string& user, const SshSurroundings& around)
      : host_(host), user_(user), around_(around) {}

  void read(const std::string& path, const std::string& folder, int depth = 0) {
    const auto text = around_.read(path);
    if (!text) return;
    const bool outside = active_;
    for (const std::string_view line : split(*text, '\n')) take(line, folder, depth);
    active_ = outside;
    unknown_.clear();
  }

  SshSettings settings;

 private:
  void take(std::string_view line, const std::string& folder, int depth) {
    auto words = words_of(line);
    if (words.size() < 2) return;
    const std::string keyword = lower(words.front());
    words.erase(words.begin());
    if (keyword == "host" || keyword == "match") unknown_.clear();
    if (keyword == "host")
      active_ = matches_any(words, host_);
    else if (keyword == "match")
      active_ = match(words);
    else if (!unknown_.empty() && leads_somewhere(keyword))
      set_once(settings.passed_over, unknown_);
    else if (active_ && keyword == "include")
      include(words, folder, depth);
    else if (active_)
      set(keyword, words, line);
  }

  static bool leads_somewhere(const std::string& keyword) {
    constexpr std::string_view kSuch[] = {
        "hostname", "port", "user", "proxyjump", "proxycommand", "identityfile", "identityagent"};
    return std::find(std::begin(kSuch), std::end(kSuch), keyword) != std::end(kSuch);
  }

  // What it does not know it notes.
  bool knows(const std::string& criterion) {
    constexpr std::string_view kSuch[] = {"all", "host", "originalhost", "user", "localuser"};
    const bool is_one = std::find(std::begin(kSuch), std::end(kSuch), criterion) != std::end(kSuch);
    if (!is_one) unknown_ = criterion;
    return is_one;
  }

  bool match(const Words& words) {
    if (words.size() == 1) return knows(lower(words[0])) && lower(words[0]) == "all";
    const std::string& user = user_.empty() ? settings.user : user_;
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
      const auto patterns = split(words[i + 1], ',');
      const std::string what = lower(words[i]);
      if (!knows(what)) return false;
      const auto fits = [&](const std::string& text) { return matches_any(patterns, text); };
      const std::string& name = settings.host_name.empty() ? host_ : settings.host_name;
      if (what == "host"           ? !fits(name)
          : what == "originalhost" ? !fits(host_)
          : what == "user"         ? !fits(user.empty() ? around_.local_user : user)
                                   : what != "localuser" || !fits(around_.local_user))
        return false;
    }
    return words.size() % 2 == 0;
  }

  void include(const Words& patterns, const std::string& folder, int depth) {
    if (depth == kDeepestInclude) return;
    for (std::string pattern : patterns) {
      if (pattern.starts_with("~/")) pattern = around_.home + pattern.substr(1);
      if (!pattern.starts_with('/')) pattern = folder + "/" + pattern;
      for (const std::string& path : around_.find(pattern)) read(path, folder, depth + 1);
    }
  }

  void set(const std::string& keyword, const Words& words, std::string_view line) {
    SshSettings& s = settings;
    const std::string& word = words[0];
    const bool proxied = !s.proxy_jump.empty() || !s.proxy_command.empty();
    if (keyword == "hostname") set_once(s.host_name, word);
    if (keyword == "user") set_once(s.user, word);
    if (keyword == "port") set_once(s.port, positive(word));
    if (keyword == "hostkeyalias") set_once(s.host_key_alias, word);
    if (keyword == "identityfile") s.identities.push_back(word);
    if (keyword == "identitiesonly") set_flag(s.identities_only, identities_only_seen_, word);
    if (keyword == "identityagent") set_once(s.identity_agent, word);
    if (keyword == "proxyjump" && !proxied) s.proxy_jump = word;
    if (keyword == "proxycommand" && !proxied) s.proxy_command = rest_of(line);
    if (keyword == "userknownhostsfile") set_once(s.user_known_hosts, words);
    if (keyword == "globalknownhostsfile") set_once(s.global_known_hosts, words);
    if (keyword == "hashknownhosts") set_flag(s.hash_known_hosts, hash_known_hosts_seen_, word);
    if (keyword == "connecttimeout") set_once(s.connect_timeout_s, positive(word));
    if (keyword == "stricthostkeychecking") set_once(s.strict_host_key_checking, lower(word));
    if (keyword == "addressfamily") set_once(s.address_family, lower(word));
    const bool asks = keyword == "certificatefile" || keyword == "pkcs11provider" ||
                      (keyword == "hostbasedauthentication" && lower(word) == "yes");
    if (asks) s.unsupported.push_back(keyword);
  }

  static void set_flag(bool& field, bool& seen, const std::string& word) {
    if (!seen) field = lower(word) == "yes" || lower(word) == "true";
    seen = true;
  }

  const std::string& host_;
  const std::string& user_;
  const SshSurroundings& around_;
  std::string unknown_;  // by which the present Match, which else fits, is made
  bool active_ = true, identities_only_seen_ = false, hash_known_hosts_seen_ = false;
};

// What stands behind %-signs, ${…} and ~.
class Expansion {
 public:
  Expansion(const std::string& host, const std::string& user, int port, const SshSettings& s,
            const SshSurroundings& around)
      : around_(around), given_(host) {
    host_ = s.host_name.empty() ? host : s.host_name;
    user_ = !user.empty() ? user : s.user.empty() ? around.local_user : s.user;
    port_ = std::to_string(port ? port : s.port ? s.port : kSshPort);
  }

  void percent(std::string& text) const {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '%' || i + 1 == text.size())
        out += text[i];
      else
        out += value_of(text[++i]);
    }
    text = std::move(out);
  }

  void path(std::string& text) const {
    if (text.starts_with("~/")) text = around_.home + text.substr(1);
    variables(text);
    percent(text);
  }

 private:
  std::string value_of(char sign) const {
    switch (sign) {
      case 'h':
        return host_;
      case 'n':
        return given_;
      case 'p':
        return port_;
      case 'r':
        return user_;
      case 'u':
        return around_.local_user;
      case 'd':
        return around_.home;
      case '%':
        return "%";
      default:
        return {'%', sign};
    }
  }

  void variables(std::string& text) const {
    for (auto at = text.find("${"); at != text.npos; at = text.find("${", at)) {
      const auto end = text.find('}', at);
      if (end == text.npos) return;
      const auto value = around_.variable(text.substr(at + 2, end - at - 2)).value_or("");
      text.replace(at, end + 1 - at, value);
      at += value.size();
    }
  }

  const SshSurroundings& around_;
  const std::string& given_;
  std::string host_, user_, port_;
};

}  // namespace

SshSettings read_ssh_config(const std::string& host, const std::string& user, int port,
                            const SshSurroundings& around) {
  Reader reader(host, user, around);
  reader.read(around.home + "/.ssh/config", around.home + "/.ssh");
  reader.read("/etc/ssh/ssh_config", "/etc/ssh");
  SshSettings& s = reader.settings;

  if (!s.host_name.empty()) {
    // Only here does %h mean the name as it was given.
    const SshSettings nothing;
    Expansion(host, user, port, nothing, around).percent(s.host_name);
  }
  const Expansion expansion(host, user, port, s, around);
  for (Words* paths : {&s.identities, &s.user_known_hosts, &s.global_known_hosts})
    for (std::string& path : *paths) expansion.path(path);
  expansion.path(s.identity_agent);
  expansion.percent(s.proxy_command);
  return s;
}

}  // namespace corro::launcher
