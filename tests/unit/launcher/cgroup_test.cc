#include "launcher/agent/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "base/process.h"
#include "base/time.h"
#include "launcher/agent/oom.h"
#include "tests/support/folder.h"
#include "tests/support/not_tested.h"

namespace corro::launcher::agent {

namespace {

namespace fs = std::filesystem;

using namespace std::chrono_literals;

// Recorded: a machine with both versions, whose memory is accounted for in version 1.
constexpr auto kBothCgroup =
    "9:name=systemd:/\n8:pids:/\n7:blkio:/\n6:freezer:/\n5:devices:/\n"
    "4:memory:/process_api/637ae29e046f05d9\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/\n0::/\n";
constexpr auto kBothMounts =
    "23 1 259:0 / / rw,relatime - ext4 /dev/root rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

// A desktop with version 2.
constexpr auto kNewCgroup =
    "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope\n";
constexpr auto kNewMounts =
    "26 20 0:24 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n";

// A container of Docker with version 1, which sees the part of the hierarchy that is its own.
constexpr auto kDockerCgroup =
    "12:cpu,cpuacct:/docker/4d5e\n6:hugetlb:/docker/4d5e\n5:memory:/docker/4d5e\n";
constexpr auto kDockerMounts =
    "1031 1020 0:32 /docker/4d5e /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:11 - cgroup cgroup "
    "rw,cpu,cpuacct\n"
    "1036 1020 0:37 /docker/4d5e /sys/fs/cgroup/memory ro,nosuid master:16 - cgroup cgroup "
    "rw,memory\n";

constexpr auto kEvents = "low 0\nhigh 0\nmax 1201\noom 3\noom_kill 2\noom_group_kill 0\n";
constexpr auto kOomControl = "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n";
constexpr auto kOldOomControl = "oom_kill_disable 0\nunder_oom 0\n";  // before Linux 4.13

using test::Folder;
using test::not_tested;

std::string read_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

bool wait_until(const std::function<bool()>& done) {
  for (const auto end = Deadline::in(10s); !end.passed(); std::this_thread::sleep_for(1ms))
    if (done()) return true;
  return false;
}

// One for this machine, or the reason, said loudly.
std::optional<WorkerCgroup> any_cgroup(std::uint32_t worker) {
  const auto home = own_cgroup();
  auto made = home ? WorkerCgroup::create(*home, worker) : Result<WorkerCgroup>(home.error());
  if (made) return std::move(*made);
  not_tested("no cgroup can be made here: " + made.error().text());
  return std::nullopt;
}

ExitStatus wait_for(pid_t pid) {
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  return reap(pid)->status;
}

}  // namespace

TEST_CASE("the cgroup that accounts for memory is found, of either version") {
  CHECK(*locate_cgroup(kBothCgroup, kBothMounts) ==
        Cgroup{1, "/sys/fs/cgroup/memory/process_api/637ae29e046f05d9", "/sys/fs/cgroup/memory"});
  CHECK(*locate_cgroup(kNewCgroup, kNewMounts) ==
        Cgroup{2,
               "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope",
               "/sys/fs/cgroup"});
  CHECK(*locate_cgroup("0::/\n", kNewMounts) == Cgroup{2, "/sys/fs/cgroup", "/sys/fs/cgroup"});
  CHECK(*locate_cgroup(kDockerCgroup, kDockerMounts) ==
        Cgroup{1, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory"});
}

TEST_CASE("a mount point may have any name") {
  CHECK(locate_cgroup("0::/a\n", "26 20 0:24 / /mnt/c\\040group rw - cgroup2 none rw\n")->folder ==
        "/mnt/c group/a");
}

TEST_CASE("a cgroup that cannot be seen is said to be so") {
  CHECK_FALSE(locate_cgroup("", kNewMounts));
  CHECK_FALSE(locate_cgroup("nonsense\n1:x\n::", "nonsense\n - \n"));
  CHECK_FALSE(locate_cgroup(kNewCgroup, ""));
  CHECK_FALSE(locate_cgroup("0::/../other\n", kNewMounts));  // outside of our namespace
  CHECK_FALSE(locate_cgroup("5:memory:/docker/other\n", kDockerMounts));
  CHECK_FALSE(locate_cgroup("5:memory:/docker/4d5eff\n", kDockerMounts));
}

TEST_CASE("kills and limits are read from the files of both versions") {
  CHECK(parse_oom_kills(kEvents) == 2);
  CHECK(parse_oom_kills(kOomControl) == 1);
  CHECK(parse_oom_kills(kOldOomControl) == std::nullopt);
  CHECK(parse_oom_kills("") == std::nullopt);
  CHECK(parse_oom_kills("oom_kill x\n") == std::nullopt);
  CHECK(parse_bytes("19996672\n") == 19996672);
  CHECK(parse_bytes("max\n") == std::nullopt);
  CHECK(parse_bytes("9223372036854771712\n") == std::nullopt);
  CHECK(parse_bytes("") == std::nullopt);
}

TEST_CASE("the counters of a cgroup of version 2, and the least limit above it") {
  const Folder folder;
  folder.put("memory.max", "300\n");
  folder.put("a/memory.max", "100\n");
  folder.put("a/b/memory.max", "max\n");
  folder.put("a/b/memory.events", kEvents);
  folder.put("a/b/memory.peak", "99\n");
  CHECK(read_counters({2, folder.path() + "/a/b", folder.path()}) ==
        MemoryCounters{2, std::nullopt, 100, 99});
  CHECK(read_counters({2, folder.path(), folder.path()}) ==
        MemoryCounters{std::nullopt, std::nullopt, 300, std::nullopt});
  CHECK(read_counters({2, folder.path() + "/none", folder.path() + "/none"}) == MemoryCounters{});
}

TEST_CASE("the counters of a cgroup of version 1") {
  const Folder folder;
  folder.put("memory.limit_in_bytes", "9223372036854771712\n");
  folder.put("a/memory.limit_in_bytes", "19996672\n");
  folder.put("a/memory.max_usage_in_bytes", "19996672\n");
  folder.put("a/memory.failcnt", "76\n");
  folder.put("a/memory.oom_control", kOomControl);
  CHECK(read_counters({1, folder.path() + "/a", folder.path()}) ==
        MemoryCounters{1, 76, 19996672, 19996672});
  CHECK(read_counters({1, folder.path(), folder.path()}).limit_bytes == std::nullopt);
}

TEST_CASE("a worker's own counters prove it, those of all make it likely") {
  using By = OomVerdict::By;
  const auto own = judge_own({1, std::nullopt, 100, 99});
  CHECK(own == OomVerdict{By::own_cgroup, 100, 99, 0, ""});
  CHECK(own.certain());
  CHECK(judge_own({0, 5, 100, 99}) == OomVerdict{});
  CHECK(judge_own({std::nullopt, 5, 100, 99}).by == By::same_time);  // before Linux 4.13
  CHECK(judge_own({}) == OomVerdict{});

  CHECK(judge_shared({2, {}, 100, 90}, {3, {}, 100, 99}) ==
        OomVerdict{By::same_time, 100, std::nullopt, 0, ""});
  CHECK_FALSE(judge_shared({2, {}, 100, 90}, {2, {}, 100, 99}));
  CHECK_FALSE(judge_shared({}, {}));
  CHECK_FALSE(judge_shared({}, {}).certain());
}

TEST_CASE("the kernel's log says whom it killed, in the words of its time") {
  CHECK(parse_oom_kill("3,1099,16889355043,-;Memory cgroup out of memory: Killed process 3686 "
                       "(python3) total-vm:75160kB, anon-rss:19200kB, file-rss:6612kB, "
                       "shmem-rss:0kB, UID:0 pgtables:104kB oom_score_adj:0\n") ==
        OomKill{3686, "python3", 25812 * 1024, true});
  CHECK(parse_oom_kill("Out of memory: Killed process 812 (my (odd) train) total-vm:100kB, "
                       "anon-rss:8kB, file-rss:0kB, shmem-rss:4kB, UID:1000") ==
        OomKill{812, "my (odd) train", 12 * 1024, false});
  CHECK(parse_oom_kill("Killed process 1234 (python), UID 1000, total-vm:100kB, anon-rss:8kB, "
                       "file-rss:0kB") == OomKill{1234, "python", 8 * 1024, false});
  CHECK_FALSE(
      parse_oom_kill("Memory cgroup out of memory: Kill process 1234 (python) score 900 or "
                     "sacrifice child"));
  CHECK_FALSE(parse_oom_kill("oom_reaper: reaped process 1234 (python), now anon-rss:0kB"));
  for (const auto* broken :
       {"", "Killed process ", "Killed process x (a) total-vm:", "Killed process 1",
        "Killed process 1 (a", "Killed process 1 )a( total-vm:1kB",
        "Killed process 99999999999999999999 (a) total-vm:1kB"})
    CHECK_FALSE(parse_oom_kill(broken));
}

TEST_CASE("a verdict travels") {
  const OomVerdict verdict{OomVerdict::By::kernel_log, 1, 2, 3, "x"};
  CHECK(*decode<OomVerdict>(encode(verdict)) == verdict);
}

TEST_CASE("only cgroups of ours are known by their names") {
  CHECK(cgroup_name(12, 3) == "corro-12-3");
  CHECK(agent_of_cgroup("corro-12-3") == 12);
  for (const auto* other : {"corro-", "corro-12", "corro-12-", "corro-0-1", "corro--1-1",
                            "corro-x-1", "corro-12-3-4", "system.slice", "corro-99999999999-1"})
    CHECK(agent_of_cgroup(other) == std::nullopt);
}

TEST_CASE("what a dead agent has left is removed, and nothing else") {
  const Folder folder;
  const Cgroup home{2, folder.path(), folder.path()};
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);
  for (const auto& name : {cgroup_name(dead, 0), cgroup_name(dead, 1), cgroup_name(::getpid(), 0),
                           std::string("other")})
    fs::create_directories(folder.path() + "/" + name);
  folder.put(cgroup_name(dead, 1) + "/busy", "");  // as rmdir sees one with processes
  CHECK(remove_leftovers(home) == 1);
  CHECK_FALSE(fs::exists(folder.path() + "/" + cgroup_name(dead, 0)));
  CHECK(fs::exists(folder.path() + "/" + cgroup_name(dead, 1)));
  CHECK(fs::exists(folder.path() + "/" + cgroup_name(::getpid(), 0)));
  CHECK(fs::exists(folder.path() + "/other"));
}

TEST_CASE("where no cgroup can be made the reason is known") {
  const Folder folder;
  const auto made = WorkerCgroup::create({2, folder.path() + "/none", folder.path()}, 0);
  REQUIRE_FALSE(made);
  CHECK(made.error().text().find("No such file or directory") != std::string::npos);
  // A plain folder has no cgroup.procs, and nothing stays there.
  CHECK_FALSE(WorkerCgroup::create({2, folder.path(), folder.path()}, 0));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a worker is taken into its cgroup, which ends with it") {
  auto cgroup = any_cgroup(7001);
  if (!cgroup) return;
  const std::string folder = cgroup->place().folder;
  const auto pid = spawn({.argv = {"/bin/sleep", "60"}, .env = {}, .cwd = {}});
  REQUIRE(pid);
  REQUIRE(cgroup->take_in(*pid));
  CHECK(read_line(folder + "/cgroup.procs") == std::to_string(*pid));
  CHECK_FALSE(cgroup->remove());  // somebody is in it
  if (!cgroup->kill()) ::kill(*pid, SIGKILL);
  CHECK(wait_for(*pid) == ExitStatus::killed(SIGKILL));
  CHECK(wait_until([&] { return cgroup->remove(); }));
  CHECK_FALSE(fs::exists(folder));
}

TEST_CASE("what a worker has started before is taken in with it") {
  auto cgroup = any_cgroup(7003);
  if (!cgroup) return;
  const auto pid = spawn({.argv = {"sh", "-c", "sh -c 'sleep 60; true' & sleep 60; true"},
                          .env = {"PATH=/usr/bin:/bin"},
                          .cwd = {}});
  REQUIRE(pid);
  const auto members = [&] {
    std::ifstream procs(cgroup->place().folder + "/cgroup.procs");
    return std::vector<std::string>(std::istream_iterator<std::string>(procs), {}).size();
  };
  // Two shells, and what each of them waits for.
  CHECK(wait_until([&] { return cgroup->take_in(*pid) && members() == 4; }));
  ::kill(-*pid, SIGKILL);
  CHECK(wait_for(*pid) == ExitStatus::killed(SIGKILL));
  CHECK(wait_until([&] { return cgroup->remove(); }));
}

TEST_CASE("a cgroup that counts no memory still ends all that is in it at once") {
  const auto above = "/sys/fs/cgroup/unified";
  auto cgroup = WorkerCgroup::create({2, above, above}, 7004);
  if (!cgroup) {
    not_tested("there is no such cgroup here: " + cgroup.error().text());
    return;
  }
  const auto pid = spawn({.argv = {"/bin/sleep", "60"}, .env = {}, .cwd = {}});
  REQUIRE(pid);
  REQUIRE(cgroup->take_in(*pid));
  CHECK_FALSE(judge_own(read_counters(cgroup->place())));
  REQUIRE(cgroup->kill());
  CHECK(wait_for(*pid) == ExitStatus::killed(SIGKILL));
  CHECK(wait_until([&] { return cgroup->remove(); }));
}

TEST_CASE("a worker beyond the limit of its cgroup is known to have been killed for that") {
  auto cgroup = any_cgroup(7002);
  if (!cgroup) return;
  const char* name = cgroup->place().version == 1 ? "memory.limit_in_bytes" : "memory.max";
  std::ofstream limit(cgroup->place().folder + "/" + name);
  limit << (20 << 20) << std::flush;
  if (!limit) {
    not_tested("no limit can be set here: " + cgroup->place().folder);
    return;
  }
  OomWatch watch(*own_cgroup());
  // dd fills as much memory as it has for a block, and waits until it is where it should be.
  constexpr auto* kHungry = "read line; exec dd if=/dev/zero of=/dev/null bs=64M count=1";
  const Fd nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  auto gate = make_pipe();
  REQUIRE(gate);
  const auto pid = spawn({.argv = {"sh", "-c", kHungry},
                          .env = {"PATH=/usr/bin:/bin"},
                          .cwd = {},
                          .in = gate->read_end.get(),
                          .err = nothing.get()});
  REQUIRE(pid);
  REQUIRE(cgroup->take_in(*pid));
  gate->write_end.reset();
  const auto status = wait_for(*pid);
  if (status != ExitStatus::killed(SIGKILL)) {
    not_tested("the limit was not enforced: dd " + status.text());
    return;
  }
  const auto verdict = watch.verdict(*pid, &*cgroup);
  CHECK(verdict.by == OomVerdict::By::own_cgroup);
  CHECK(verdict.limit_bytes == 20 << 20);
  CHECK(verdict.peak_bytes.value_or(20 << 20) > 10 << 20);

  // Without the cgroup's word the log's is good enough, where it can be read.
  if (::access("/dev/kmsg", R_OK) == 0) {
    OomVerdict by_log;
    CHECK(wait_until([&] { return static_cast<bool>(by_log = watch.verdict(*pid, nullptr)); }));
    CHECK(by_log.by == OomVerdict::By::kernel_log);
    CHECK(by_log.pid == *pid);
    CHECK(by_log.name == "dd");
  } else {
    not_tested("the kernel's log cannot be read here");
  }
  CHECK_FALSE(watch.verdict(::getpid(), nullptr).certain());
  CHECK(wait_until([&] { return cgroup->remove(); }));
}

}  // namespace corro::launcher::agent
