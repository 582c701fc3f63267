#include "launcher/job/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "base/fd.h"
#include "base/text.h"

namespace corro::launcher {

namespace {

constexpr auto kFresh = std::chrono::minutes(60);  // as Horovod has it
constexpr std::size_t kLines = 64;
constexpr std::size_t kMemoryBytes = 1 << 20;

long long seconds_of(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

struct Line {
  std::string_view question;
  long long time = 0;
  std::vector<std::string_view> ways;
};

std::optional<Line> parse_line(std::string_view text) {
  const auto words = split(text, ' ');
  const auto time = words.size() < 3 ? std::nullopt : parse_int(words[1]);
  if (!time || *time < 0) return std::nullopt;
  return Line{words[0], *time, {words.begin() + 2, words.end()}};
}

bool is_fresh(const Line& line, WallTime now) {
  const auto age = seconds_of(now) - line.time;
  return age >= 0 && age < std::chrono::seconds(kFresh).count();
}

std::string folder_of_memory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/corro";
  const char* home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/corro" : std::string();
}

bool is_private(int fd, mode_t type) {
  struct stat info;
  return ::fstat(fd, &info) == 0 && (info.st_mode & S_IFMT) == type && info.st_uid == ::geteuid() &&
         (info.st_mode & 077) == 0;
}

// The folder, which is made if it is not there; none if others may write to it.
Fd open_folder() {
  const std::string path = folder_of_memory();
  if (path.empty()) return {};
  ::mkdir(path.substr(0, path.rfind('/')).c_str(), 0700);
  ::mkdir(path.c_str(), 0700);
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return folder && is_private(folder.get(), S_IFDIR) ? std::move(folder) : Fd();
}

}  // namespace

std::optional<KnownWays> recall(std::string_view memory, std::string_view question, WallTime now) {
  for (const auto text : split(memory, '\n')) {
    const auto line = parse_line(text);
    if (!line || line->question != question || !is_fresh(*line, now)) continue;
    KnownWays ways;
    for (const auto way : line->ways) {
      const auto equals = way.rfind('=');
      if (equals == way.npos) return std::nullopt;
      ways[std::string(way.substr(0, equals))] = way.substr(equals + 1);
    }
    return ways;
  }
  return std::nullopt;
}

std::string remember(std::string_view memory, std::string_view question, const KnownWays& ways,
                     WallTime now) {
  std::string out = fmt::format("{} {}", question, seconds_of(now));
  for (const auto& [host, address] : ways) out += fmt::format(" {}={}", host, address);
  out += '\n';
  std::size_t lines = 1;
  for (const auto text : split(memory, '\n')) {
    const auto line = parse_line(text);
    if (!line || line->question == question || !is_fresh(*line, now) || ++lines > kLines) continue;
    out += fmt::format("{}\n", text);
  }
  return out;
}

std::string read_memory() {
  const Fd folder = open_folder();
  const Fd file(folder ? ::openat(folder.get(), "ways", O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1);
  std::string text;
  if (!file || !is_private(file.get(), S_IFREG)) return text;
  std::array<char, 65536> piece;
  for (ssize_t n;
       text.size() < kMemoryBytes && (n = ::read(file.get(), piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(n));
  return text;
}

// All of it or nothing, whoever else writes at the same time.
void write_memory(const std::string& text) {
  const Fd folder = open_folder();
  if (!folder || text.size() > kMemoryBytes) return;
  const auto fresh = fmt::format("ways.{}", ::getpid());
  const Fd file(::openat(folder.get(), fresh.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return;
  const bool written =
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || ::renameat(folder.get(), fresh.c_str(), folder.get(), "ways") != 0)
    ::unlinkat(folder.get(), fresh.c_str(), 0);
}

}  // namespace corro::launcher
