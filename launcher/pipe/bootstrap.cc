#include "launcher/pipe/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "launcher/agent/guard.h"

namespace corro::launcher {

namespace {

constexpr std::size_t kNoiseLimit = 64 << 10;
constexpr std::size_t kNoiseShown = 500;

// A cache that others may write to, or that a link leads to, is as good as none.  Who could change
// what is in a directory of mode 0700 that is ours could run programs as us anyway, so what was
// verified when it came is not read again each time: name and size have to do.  The same for a file
// at the path that this program has here (a shared file system, or the same package), provided
// that nobody but us and root could have written it.  For a machine of another kind this program is
// no use, and any of the same version there has to do.
//
// What the kernel is made for it says itself from Linux 6.1 on, which is a process less.
//
// In braces, so that a shell has read all of it before it does the first thing.  `true >` and not
// `: >`: a redirection that fails ends the shell if the builtin is a special one.
constexpr std::string_view kScript = R"sh(
say() { printf '\n%s %s\n' "$hail" "$*"; }
run() { say RUN "$1"; exec "$1" --guard "$hail"; }
look() { stat -Lc "$1" "$2" 2>/dev/null; }
same() {
  case "$(look "$1%u:%a" "$path")" in
    "${2}0:"*[0145][0145]) [ -x "$path" ];;
    "$2"*[0145][0145]) [ -x "$path" ] && [ -O "$path" ];;
    *) false;;
  esac
}
fits() {
  case "$("$1" --version 2>/dev/null </dev/null)" in *"Corro $version");; *) false;; esac
}
ours() { [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] && [ "$(look %a "$1")" = 700 ]; }
held() {
  [ -x "$1/$file" ] && [ -f "$1/$file" ] && [ ! -L "$1/$file" ] && [ -O "$1/$file" ] &&
    ours "$1" && [ "$(look %s "$1/$file")" = "$size" ]
}
room() {
  mkdir -p "$1" && ours "$1" && true > "$1/.$hail" && chmod 700 "$1/.$hail" && [ -x "$1/.$hail" ]
}
tidy() { find "$1" -type f -mtime +30 -exec rm -f {} +; }
stage() {
  read -r go sum && [ "$go" = GO ] && head -c "$size" > "$1/.$hail" &&
    [ "$(sha256sum < "$1/.$hail")" = "$sum  -" ] && mv -f "$1/.$hail" "$1/$file"
}
say HAIL
read -r here 2>/dev/null </proc/sys/kernel/arch || here=$(uname -m)
if [ "$here" != "$machine" ]; then
  same '' '' && fits "$path" && run "$path"
  fits horovodrun && run horovodrun
  say NEED "$here"
  exit 1
fi
same %s:%Y: "$size:$modified:" && run "$path"
home=${HOME:-/nowhere}; user=$(id -u)
set -- "${XDG_CACHE_HOME:-$home/.cache}/corro" "$home/.cache/corro" "/tmp/corro-$user" "/dev/shm/corro-$user"
for folder do
  held "$folder" && { touch -c "$folder/$file"; tidy "$folder"; run "$folder/$file"; }
done
mask=$(umask); umask 077
for folder do
  room "$folder" && break
  folder=
done
[ "$folder" ] || { say NOWHERE; exit 1; }
say NEED "$here" "$(getconf GNU_LIBC_VERSION)"
if stage "$folder"; then
  tidy "$folder"
  umask "$mask"
  run "$folder/$file"
fi
rm -f "$folder/.$hail"
say SPOILT
exit 1
)sh";

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '\n' || static_cast<unsigned char>(c) >= ' ' ? c : '?';
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::string tail_of(std::string_view text) {
  return printable(text.size() > kNoiseShown ? text.substr(text.size() - kNoiseShown) : text);
}

// The newest version of glibc that the file names.  The dynamic linker's names stand in it as text.
std::string newest_glibc(std::string_view program) {
  constexpr std::string_view kMark = "GLIBC_2.";
  std::string newest;
  for (auto at = program.find(kMark); at != program.npos; at = program.find(kMark, at + 1)) {
    const auto from = at + kMark.size() - 2;
    const auto to = program.find_first_not_of("0123456789.", from);
    const auto version = program.substr(from, std::min(to, program.size()) - from);
    if (parse_version(version) > parse_version(newest)) newest = version;
  }
  return newest;
}

}  // namespace

Bootstrap::Bootstrap(std::string hail, Program program)
    : hail_(std::move(hail)), program_(std::move(program)) {}

std::string Bootstrap::script() const {
  return fmt::format(
      "{{ hail={}; file=horovodrun-{}; size={}; modified={}; machine={}; version={}; path={}{}}}\n",
      hail_, program_.id, program_.size, program_.modified, program_.machine, CORRO_VERSION,
      shell_word(program_.path), kScript);
}

std::string Bootstrap::go_ahead(const std::string& digest) {
  return fmt::format("GO {}\n", digest);
}

Bootstrap::Step Bootstrap::hear(ByteView bytes) {
  append(heard_, bytes);
  std::size_t at = 0;
  std::optional<Step> step;
  while (!step) {
    const auto text = text_of(heard_).substr(at);
    const auto end = text.find('\n');
    if (end == text.npos) break;
    at += end + 1;
    step = take_line(text.substr(0, end));
  }
  heard_.erase(heard_.begin(), heard_.begin() + static_cast<std::ptrdiff_t>(at));
  if (step && std::holds_alternative<Frames>(*step)) return Frames{std::move(heard_)};
  if (step) return std::move(*step);
  if (heard_.size() + noise_.size() > kNoiseLimit)
    return agent::Unreached{agent::Barrier::shell,
                            fmt::format("its login shell writes without end: {}", noise()), "true"};
  return Listen{};
}

std::optional<Bootstrap::Step> Bootstrap::take_line(std::string_view line) {
  if (line == guard_line(hail_)) return Step(Frames{});
  if (!line.starts_with(hail_ + " ")) {
    noise_.append(line).append("\n");
    return std::nullopt;
  }
  const auto words = split(line.substr(hail_.size() + 1), ' ');
  if (words[0] == "HAIL") hailed_ = true;
  if (words[0] == "RUN") ran_ = line.substr(line.find("RUN ") + 4);
  if (words[0] == "NEED")
    return Step(Need{std::string(words.size() > 1 ? words[1] : ""),
                     words.size() > 3 ? fmt::format("{} {}", words[2], words[3]) : ""});
  if (words[0] == "NOWHERE")
    return Step(agent::Unreached{
        agent::Barrier::staging,
        "there is no directory for this program that is private, writable and may hold programs: "
        "tried $XDG_CACHE_HOME/corro, ~/.cache/corro, /tmp/corro-UID and /dev/shm/corro-UID",
        "df -h ~ /tmp /dev/shm; ls -ld ~ ~/.cache ~/.cache/corro /tmp /dev/shm"});
  if (words[0] == "SPOILT")
    return Step(agent::Unreached{agent::Barrier::staging,
                                 "this program did not arrive there as it was sent",
                                 "df -h ~ /tmp /dev/shm"});
  return std::nullopt;
}

std::string Bootstrap::noise() const {
  const std::string text = tail_of(noise_ + std::string(text_of(heard_)));
  return text.empty() ? "it said nothing" : fmt::format("it said '{}'", text);
}

agent::Unreached Bootstrap::explain_end(std::optional<int> exit_code,
                                        const std::string& asides) const {
  const std::string end = exit_code ? fmt::format("ended with code {}", *exit_code) : "ended";
  const std::string said =
      asides.empty() ? noise() : fmt::format("{}; on stderr '{}'", noise(), tail_of(asides));
  if (!ran_.empty())
    return {agent::Barrier::machine,
            fmt::format("this program, there {}, does not run: it {}: {}", ran_, end, said),
            is_in_cache(ran_) ? "rm " + shell_word(ran_) : shell_word(ran_) + " --version"};
  if (hailed_)
    return {agent::Barrier::shell,
            fmt::format("the shell there {} before the agent ran: {}", end, said),
            "uname -a; df -h ~ /tmp"};
  return {agent::Barrier::shell,
          fmt::format("what runs there at login {} before it took a command from its input: {}",
                      end, said),
          "true"};
}

// Who is damaged there comes anew when it is gone.
bool Bootstrap::is_in_cache(const std::string& path) const {
  return path.ends_with("/horovodrun-" + program_.id);
}

agent::Unreached Bootstrap::explain_silence() const {
  return {agent::Barrier::shell,
          fmt::format("{} did not start the agent in time: {}",
                      hailed_ ? "the shell there" : "what runs there at login", noise()),
          "true"};
}

std::optional<agent::Unreached> misfit(const Bootstrap::Need& need, const std::string& own_machine,
                                       ByteView program) {
  if (!need.machine.empty() && need.machine != own_machine)
    return agent::Unreached{agent::Barrier::machine,
                            fmt::format("it is {}, and this program was made for {}: install Corro "
                                        "{} there, so that a login finds it as horovodrun",
                                        need.machine, own_machine, CORRO_VERSION),
                            "command -v horovodrun && horovodrun --version"};
  constexpr std::string_view kGlibc = "glibc ";
  if (!need.libc.starts_with(kGlibc)) return std::nullopt;  // it does not say: try
  const std::string wanted = newest_glibc(text_of(program));
  const auto has = std::string_view(need.libc).substr(kGlibc.size());
  if (parse_version(has) >= parse_version(wanted)) return std::nullopt;
  return agent::Unreached{
      agent::Barrier::machine,
      fmt::format("it has glibc {}, and this program needs {} or newer", has, wanted),
      "ldd --version"};
}

}  // namespace corro::launcher
