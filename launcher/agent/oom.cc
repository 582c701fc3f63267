#include "launcher/agent/oom.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"

namespace corro::launcher::agent {

namespace {

constexpr std::size_t kKillsKept = 1024;

// The number at the front, which is taken away.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  const auto end =
      std::find_if(text.begin(), text.end(), [](char c) { return c < '0' || c > '9'; });
  const auto digits = static_cast<std::size_t>(end - text.begin());
  const auto value = parse_int(text.substr(0, digits));
  if (!value) return std::nullopt;
  text.remove_prefix(digits);
  return static_cast<std::uint64_t>(*value);
}

std::uint64_t kilobytes_after(std::string_view text, std::string_view label) {
  const auto at = text.find(label);
  if (at == text.npos) return 0;
  text.remove_prefix(at + label.size());
  return take_number(text).value_or(0) * 1024;
}

}  // namespace

//   Memory cgroup out of memory: Killed process 3686 (python3) total-vm:75160kB, anon-rss:19200kB,
//     file-rss:6612kB, shmem-rss:0kB, UID:0 pgtables:104kB oom_score_adj:0          (Linux 5 and 6)
//   Out of memory: Killed process 812 (train) total-vm:…
//   Killed process 1234 (python), UID 1000, total-vm:…       (Linux 3 and 4, after a line of its
//   own
//     that begins with "Memory cgroup out of memory: Kill process")
std::optional<OomKill> parse_oom_kill(std::string_view line) {
  constexpr std::string_view kKilled = "Killed process ";
  const auto at = line.find(kKilled);
  if (at == line.npos) return std::nullopt;
  auto rest = line.substr(at + kKilled.size());
  const auto pid = take_number(rest);
  // A name may have parentheses of its own, but what follows has none.
  const auto open = rest.find('('), numbers = rest.find("total-vm:");
  const auto close = rest.rfind(')', numbers);
  if (!pid || open == rest.npos || numbers == rest.npos || close == rest.npos || close < open)
    return std::nullopt;

  OomKill kill;
  kill.pid = static_cast<pid_t>(*pid);
  kill.name = rest.substr(open + 1, close - open - 1);
  for (const auto* label : {"anon-rss:", "file-rss:", "shmem-rss:"})
    kill.rss_bytes += kilobytes_after(rest, label);
  kill.in_cgroup = line.substr(0, at).find("Memory cgroup out of memory") != line.npos;
  return kill;
}

OomVerdict judge_own(const MemoryCounters& counters) {
  OomVerdict verdict;
  verdict.limit_bytes = counters.limit_bytes;
  verdict.peak_bytes = counters.peak_bytes;
  if (counters.oom_kills.value_or(0) > 0) {
    verdict.by = OomVerdict::By::own_cgroup;
  } else if (!counters.oom_kills && counters.failures.value_or(0) > 0) {
    // Linux before 4.13 does not count kills; the limit was met, which reclaiming may have cured.
    verdict.by = OomVerdict::By::same_time;
  }
  return verdict ? verdict : OomVerdict{};
}

OomVerdict judge_shared(const MemoryCounters& before, const MemoryCounters& now) {
  if (now.oom_kills.value_or(0) <= before.oom_kills.value_or(0)) return {};
  OomVerdict verdict;
  verdict.by = OomVerdict::By::same_time;
  verdict.limit_bytes = now.limit_bytes;  // and no peak: it is not this worker's
  return verdict;
}

OomWatch::OomWatch(std::optional<Cgroup> home)
    : home_(std::move(home)), log_(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (home_) before_ = read_counters(*home_);
  if (log_ && ::lseek(log_.get(), 0, SEEK_END) < 0) log_.reset();
}

// Each read gives one record: "6,1234,16889355043,-;text".  EPIPE: some were overwritten.
void OomWatch::read_log() {
  constexpr int kRecords = 20'000;  // more than the kernel keeps by default
  std::array<char, 8192> record;
  for (int i = 0; log_ && i < kRecords; ++i) {
    const ssize_t n = ::read(log_.get(), record.data(), record.size());
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (n <= 0) return;
    if (auto kill = parse_oom_kill({record.data(), static_cast<std::size_t>(n)}))
      kills_.push_back(std::move(*kill));
    if (kills_.size() > kKillsKept) kills_.pop_front();
  }
}

OomVerdict OomWatch::verdict(pid_t worker, const WorkerCgroup* cgroup) {
  read_log();
  const auto named = std::find_if(kills_.rbegin(), kills_.rend(),
                                  [&](const OomKill& kill) { return kill.pid == worker; });
  OomVerdict verdict;
  if (cgroup) verdict = judge_own(read_counters(cgroup->place()));
  if (verdict.by != OomVerdict::By::own_cgroup && named != kills_.rend()) {
    verdict.by = OomVerdict::By::kernel_log;
    verdict.peak_bytes = named->rss_bytes;
    verdict.limit_bytes = std::nullopt;
    if (named->in_cgroup && home_) verdict.limit_bytes = read_counters(*home_).limit_bytes;
  }
  if (!verdict && home_) verdict = judge_shared(before_, read_counters(*home_));
  if (verdict && named != kills_.rend()) {
    verdict.pid = named->pid;
    verdict.name = named->name;
  }
  return verdict;
}

std::string OomVerdict::text() const {
  constexpr double kMiB = 1 << 20;
  if (by == By::nobody) return {};
  std::string text = certain() ? "out of memory" : "probably out of memory";
  if (limit_bytes)
    text += fmt::format("; the limit of its cgroup is {:.0f} MiB", *limit_bytes / kMiB);
  if (peak_bytes) text += fmt::format("; it had {:.0f} MiB at the most", *peak_bytes / kMiB);
  return text;
}

}  // namespace corro::launcher::agent
