#include "launcher/agent/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/text.h"
#include "launcher/agent/small_file.h"

namespace corro::launcher::agent {

namespace {

constexpr std::string_view kPrefix = "corro-";

// "8:pids:/path" → the path in this hierarchy, if its controllers have that name; version 2 has
// none.
std::optional<std::string_view> path_in(std::string_view cgroup, std::string_view controller) {
  for (const auto line : split(cgroup, '\n')) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const auto names = split(line.substr(first + 1, second - first - 1), ',');
    if (std::find(names.begin(), names.end(), controller) != names.end())
      return line.substr(second + 1);
  }
  return std::nullopt;
}

// In mountinfo a space is "\040", and so on.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digits = text.substr(i + 1, 3);
    const bool octal =
        text[i] == '\\' && digits.size() == 3 &&
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '7'; });
    if (octal) {
      out += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + digits[2] - '0');
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Mount {
  std::string root;  // what of the hierarchy is mounted
  std::string at;
};

// "36 31 0:33 ROOT AT rw,relatime shared:9 - TYPE SOURCE rw,memory"
std::optional<Mount> parse_mount(std::string_view line, std::string_view type,
                                 std::string_view controller) {
  const auto dash = line.find(" - ");
  if (dash == line.npos) return std::nullopt;
  const auto place = split(line.substr(0, dash), ' '), kind = split(line.substr(dash + 3), ' ');
  if (place.size() < 5 || kind.size() < 3 || kind[0] != type) return std::nullopt;
  const auto options = split(kind[2], ',');
  if (!controller.empty() && std::find(options.begin(), options.end(), controller) == options.end())
    return std::nullopt;
  return Mount{unescaped(place[3]), unescaped(place[4])};
}

// The path below the mount: none if another part of the hierarchy is mounted.
std::optional<std::string> below(const Mount& mount, std::string_view path) {
  std::string_view root = mount.root;
  if (root == "/") root = "";
  if (!path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  if (path == "/") path = "";
  if (!path.empty() && path[0] != '/') return std::nullopt;
  if (path.find("/..") != path.npos) return std::nullopt;  // outside of our namespace
  return std::string(path);
}

Result<Cgroup> locate(int version, std::string_view path, std::string_view mountinfo) {
  for (const auto line : split(mountinfo, '\n')) {
    const auto mount =
        version == 1 ? parse_mount(line, "cgroup", "memory") : parse_mount(line, "cgroup2", "");
    if (!mount) continue;
    if (const auto rest = below(*mount, path)) return Cgroup{version, mount->at + *rest, mount->at};
  }
  return Error(Errc::not_found,
               fmt::format("the cgroup {} (version {}) is mounted nowhere", path, version));
}

std::string parent_of(const std::string& folder) {
  return folder.substr(0, folder.rfind('/'));
}

const char* limit_file(int version) {
  return version == 1 ? "memory.limit_in_bytes" : "memory.max";
}

// The smallest on the way up: whichever is met first kills.
std::optional<std::uint64_t> limit_of(const Cgroup& cgroup) {
  std::optional<std::uint64_t> least;
  for (std::string folder = cgroup.folder; folder.size() >= cgroup.top.size();
       folder = parent_of(folder)) {
    const auto text = read_small(folder + "/" + limit_file(cgroup.version));
    const auto limit = text ? parse_bytes(*text) : std::nullopt;
    if (limit && (!least || *limit < *least)) least = limit;
  }
  return least;
}

// Fails if the cgroup has processes of its own, as it nearly always has: Linux lets a cgroup of
// version 2 have either processes or controllers below, and we move nobody.  Then its children are
// without counters of memory.
void want_memory_below(const Cgroup& home) {
  const Fd control(::open((home.folder + "/cgroup.subtree_control").c_str(), O_WRONLY | O_CLOEXEC));
  if (control) (void)!::write(control.get(), "+memory", 7);
}

// Whether it counts memory, or can be killed.
bool is_worth_it(const Cgroup& cgroup) {
  const auto may = [&](const char* file, int what) {
    return ::access(fmt::format("{}/{}", cgroup.folder, file).c_str(), what) == 0;
  };
  return cgroup.version == 1 || may("memory.events", R_OK) || may("cgroup.kill", W_OK);
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(
      ::opendir(fmt::format("/proc/{}/task", pid).c_str()), ::closedir);
  while (const dirent* entry = tasks ? ::readdir(tasks.get()) : nullptr)
    if (const auto thread = parse_int(entry->d_name)) out.push_back(static_cast<pid_t>(*thread));
  return out;
}

std::vector<pid_t> children_of(pid_t pid, const std::vector<pid_t>& threads) {
  std::vector<pid_t> out;
  for (const pid_t thread : threads)
    if (const auto text = read_small(fmt::format("/proc/{}/task/{}/children", pid, thread)))
      for (const auto word : split(*text, ' '))
        if (const auto child = parse_int(word)) out.push_back(static_cast<pid_t>(*child));
  return out;
}

bool is_gone(pid_t pid) {
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

Result<Cgroup> locate_cgroup(std::string_view cgroup, std::string_view mountinfo) {
  if (const auto path = path_in(cgroup, "memory")) return locate(1, *path, mountinfo);
  if (const auto path = path_in(cgroup, "")) return locate(2, *path, mountinfo);
  return Error(Errc::not_found, "this kernel has no cgroups");
}

Result<Cgroup> own_cgroup() {
  const auto cgroup = read_small("/proc/self/cgroup"),
             mountinfo = read_small("/proc/self/mountinfo");
  if (!cgroup || !mountinfo) return Error(Errc::not_found, "this kernel has no cgroups");
  return locate_cgroup(*cgroup, *mountinfo);
}

std::optional<std::uint64_t> parse_oom_kills(std::string_view events) {
  constexpr std::string_view kName = "oom_kill ";
  for (const auto line : split(events, '\n'))
    if (line.starts_with(kName)) return parse_bytes(line.substr(kName.size()));
  return std::nullopt;
}

std::optional<std::uint64_t> parse_bytes(std::string_view limit) {
  while (!limit.empty() && limit.back() == '\n') limit.remove_suffix(1);
  // Version 1 says the greatest number that is a multiple of a page.
  constexpr long long kUnlimited = 1LL << 62;
  const auto value = parse_int(limit);
  if (!value || *value < 0 || *value >= kUnlimited) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

MemoryCounters read_counters(const Cgroup& cgroup) {
  const auto number = [&](const char* name, auto parse) -> std::optional<std::uint64_t> {
    const auto text = read_small(cgroup.folder + "/" + name);
    return text ? parse(*text) : std::nullopt;
  };
  const bool old = cgroup.version == 1;
  MemoryCounters out;
  out.oom_kills = number(old ? "memory.oom_control" : "memory.events", parse_oom_kills);
  if (old) out.failures = number("memory.failcnt", parse_bytes);
  out.limit_bytes = limit_of(cgroup);
  out.peak_bytes = number(old ? "memory.max_usage_in_bytes" : "memory.peak", parse_bytes);
  return out;
}

std::string cgroup_name(pid_t agent, std::uint32_t worker) {
  return fmt::format("{}{}-{}", kPrefix, agent, worker);
}

std::optional<pid_t> agent_of_cgroup(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto numbers = split(name.substr(kPrefix.size()), '-');
  if (numbers.size() != 2 || !parse_int(numbers[1])) return std::nullopt;
  const auto agent = parse_int(numbers[0]);
  if (!agent || *agent < 1 || *agent > INT32_MAX) return std::nullopt;
  return static_cast<pid_t>(*agent);
}

int remove_leftovers(const Cgroup& home) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(home.folder.c_str()), ::closedir);
  int removed = 0;
  // rmdir spares a cgroup that has processes, so that an agent of another pid namespace, whose
  // number means nothing here, does not lose a worker's.
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr)
    if (const auto agent = agent_of_cgroup(entry->d_name); agent && is_gone(*agent))
      removed += ::rmdir(fmt::format("{}/{}", home.folder, entry->d_name).c_str()) == 0;
  return removed;
}

Result<WorkerCgroup> WorkerCgroup::create(const Cgroup& home, std::uint32_t worker) {
  if (home.version == 2) want_memory_below(home);
  const std::string folder = home.folder + "/" + cgroup_name(::getpid(), worker);
  const Cgroup place{home.version, folder, home.top};
  // What is there was left by an agent that had our number.
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
    return Error::from_errno("making the cgroup " + folder);
  if (is_worth_it(place)) return WorkerCgroup(place);
  ::rmdir(folder.c_str());
  return Error(Errc::unsupported,
               "cgroups neither count memory nor can be killed in " + home.folder);
}

WorkerCgroup::WorkerCgroup(WorkerCgroup&& other) noexcept
    : place_(std::exchange(other.place_, {})) {}

WorkerCgroup& WorkerCgroup::operator=(WorkerCgroup&& other) noexcept {
  std::swap(place_, other.place_);
  return *this;
}

WorkerCgroup::~WorkerCgroup() {
  remove();
}

bool WorkerCgroup::write(const char* file, std::string_view text) const {
  const Fd fd(::open(fmt::format("{}/{}", place_.folder, file).c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) > 0;
}

// With version 1 each thread may be moved by itself, which is quick.  By cgroup.procs the kernel
// first waits until no process of the machine forks or ends, which took 25 ms where this was
// measured; version 2 has nothing else.
bool WorkerCgroup::take_in_alone(pid_t pid, const std::vector<pid_t>& threads) const {
  if (place_.version == 2) return write("cgroup.procs", std::to_string(pid));
  if (!write("tasks", std::to_string(pid))) return false;
  for (const pid_t thread : threads)
    if (thread != pid) write("tasks", std::to_string(thread));
  return true;
}

// Who is in it starts children inside, so nobody is missed if each is moved before its children are
// looked for.
bool WorkerCgroup::take_in(pid_t pid) const {
  const auto threads = threads_of(pid);
  if (!take_in_alone(pid, threads)) return false;
  for (const pid_t child : children_of(pid, threads)) take_in(child);
  return true;
}

bool WorkerCgroup::kill() const {
  return write("cgroup.kill", "1");
}

bool WorkerCgroup::remove() {
  if (place_.folder.empty()) return true;
  if (::rmdir(place_.folder.c_str()) != 0 && errno != ENOENT) return false;
  place_.folder.clear();
  return true;
}

}  // namespace corro::launcher::agent
