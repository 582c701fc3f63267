#include "runtime/domain/waiting.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <string>
#include <vector>

namespace corro::runtime {

namespace {

using namespace std::chrono_literals;

// Reading the clock takes as long as several looks at the others' posts.
constexpr int kLooksPerClock = 64;

std::uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  long long value = 0;
  return file >> value && value > 0 ? static_cast<std::uint64_t>(value) : 0;
}

std::uint64_t smaller_limit(std::uint64_t a, std::uint64_t b) {
  if (a == 0 || b == 0) return a + b;
  return std::min(a, b);
}

std::uint64_t quota_v1(const std::string& folder) {
  const std::uint64_t quota = number_in(folder + "/cpu.cfs_quota_us");
  const std::uint64_t period = number_in(folder + "/cpu.cfs_period_us");
  return period == 0 ? 0 : quota * 1000 / period;
}

std::uint64_t quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string line;
  return std::getline(file, line) ? parse_cpu_max(line) : 0;
}

// The limit of a control group is the smallest on the path to the root.
template <class Read>
std::uint64_t quota_on_path(const std::string& mount, std::string path, Read read) {
  std::uint64_t quota = read(mount);
  while (path.size() > 1) {
    quota = smaller_limit(quota, read(mount + path));
    path.erase(path.rfind('/'));
  }
  return quota;
}

std::uint64_t own_quota() {
  std::ifstream file("/proc/self/cgroup");
  std::uint64_t quota = 0;
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const std::string path = line.substr(second + 1);
    if (controllers == ",,")
      quota = smaller_limit(quota, quota_on_path("/sys/fs/cgroup", path, quota_v2));
    else if (controllers.find(",cpu,") != std::string::npos)
      quota = smaller_limit(quota, quota_on_path("/sys/fs/cgroup/cpu", path, quota_v1));
  }
  return quota;
}

}  // namespace

void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::uint64_t parse_cpu_max(std::string_view text) {
  std::uint64_t quota = 0, period = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, quota);
  if (first.ec != std::errc() || first.ptr == end) return 0;  // "max"
  if (std::from_chars(first.ptr + 1, end, period).ec != std::errc() || period == 0) return 0;
  return quota * 1000 / period;
}

double processors_of(std::span<const CpuClaim> claims) {
  decltype(CpuClaim::mask) all{};
  std::uint64_t quota = 0;
  for (const CpuClaim& claim : claims) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] |= claim.mask[i];
    quota = smaller_limit(quota, claim.quota_thousandths);
  }
  double processors = 0;
  for (const std::uint64_t word : all) processors += std::popcount(word);
  processors = std::max(processors, 1.0);
  return quota == 0 ? processors : std::min(processors, static_cast<double>(quota) / 1000);
}

SpinPolicy spin_policy(int members, double processors) {
  if (members <= processors) return {50us, 0};
  // A yield takes about a microsecond and lets one of the others run; after a turn of all of them
  // nothing has come, and the processors are better left to other programs.
  return {0us, std::max(16, 2 * members)};
}

CpuClaim own_cpu_claim() {
  CpuClaim claim;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (std::size_t i = 0; i < claim.mask.size() * 64 && i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) claim.mask[i / 64] |= std::uint64_t{1} << (i % 64);
  claim.quota_thousandths = own_quota();
  return claim;
}

Outcome<Driven> drive(Domain& domain, const SpinPolicy& policy, Deadline deadline,
                      std::span<const int> also) {
  const auto step = [&]() -> Outcome<Domain::Progress> { return domain.advance(); };

  for (;;) {
    // Awake.
    TimePoint began{};
    int looks = 0, yields = 0;
    for (;;) {
      auto progress = step();
      if (!progress) return progress.error();
      if (progress->done) return Driven::done;
      if (progress->moved) {
        looks = yields = 0;
        began = {};
      }
      if (policy.spin > 0ns) {
        pause_processor();
        if (++looks % kLooksPerClock != 0) continue;
        const TimePoint now = Clock::now();
        if (began == TimePoint{}) began = now;
        if (now - began < policy.spin) continue;
      }
      if (yields++ >= policy.yields) break;
      ::sched_yield();
    }

    // Asleep.
    domain.sleep_begins();
    auto progress = step();
    while (progress && progress->moved && !progress->done) progress = step();
    if (progress && !progress->done) {
      std::vector<pollfd> fds{{domain.doorbell(), POLLIN, 0}};
      for (const int fd : also) fds.push_back({fd, POLLIN, 0});
      const int n = ::poll(fds.data(), fds.size(), deadline.poll_timeout_ms());
      const bool rung = (fds[0].revents & POLLIN) != 0;
      domain.sleep_ends();
      if (n > 0 && !rung) return Driven::interrupted;
      if (n < 0 && errno != EINTR)
        return Failure(Error::from_errno("waiting for the other ranks of this host"));
      if (n == 0 && deadline.passed())
        return Failure(Errc::timed_out, domain.awaited().rank,
                       fmt::format("{} did not come", domain.awaited().text()));
      continue;
    }
    domain.sleep_ends();
    if (!progress) return progress.error();
    return Driven::done;
  }
}

}  // namespace corro::runtime
