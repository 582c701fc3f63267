#include "launcher/agent/evidence.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

#include "base/process.h"
#include "launcher/agent/small_file.h"
#include "launcher/agent/stack.h"
#include "tests/support/not_tested.h"

namespace corro::agent {

// A name to be found on a stack.
extern "C" [[gnu::noinline]] void corro_test_spins(const volatile int* forever) {
  while (*forever) {
  }
}

namespace {

using namespace std::chrono_literals;

constexpr auto kSoon = 10s;  // these tests run on busy machines

// A child that does not outlive its test.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  ~Child() { end(); }
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  pid_t pid_;
};

template <class Body>
pid_t fork_to(Body body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setpgid(0, 0);
  body();
  ::_exit(0);
}

pid_t start(SpawnRequest request) {
  const auto pid = spawn(request);
  REQUIRE(pid);
  return *pid;
}

pid_t start_sleep() {
  return start({.argv = {"/bin/sleep", "60"}, .env = {}, .cwd = {}});
}

bool wait_until(const std::function<bool()>& done) {
  for (const auto end = Deadline::in(kSoon); !end.passed(); std::this_thread::sleep_for(1ms))
    if (done()) return true;
  return false;
}

std::string line_of_status(pid_t pid, std::string_view name) {
  const auto status = read_small("/proc/" + std::to_string(pid) + "/status").value_or("");
  const auto at = status.find(name);
  return at == status.npos ? "" : status.substr(at, status.find('\n', at) - at);
}

bool sleeps(pid_t pid) {
  const auto call = read_small("/proc/" + std::to_string(pid) + "/syscall").value_or("");
  return line_of_status(pid, "State:").starts_with("State:\tS") &&
         parse_syscall(call) == "clock_nanosleep";
}

Evidence examine_now(pid_t pid) {
  return examine(pid, Deadline::in(kSoon));
}

// Loudly, where this machine has no libdw.
bool stacks_can_be_read() {
  static const bool can = ::dlopen("libdw.so.1", RTLD_NOW) != nullptr;
  if (!can) test::not_tested("there is no libdw.so.1 here: native stacks");
  return can;
}

bool has_frame(const Evidence& evidence, std::string_view text) {
  return std::any_of(evidence.frames.begin(), evidence.frames.end(),
                     [&](const std::string& frame) { return frame.find(text) != frame.npos; });
}

bool is_free(pid_t pid) {
  return line_of_status(pid, "TracerPid:") == "TracerPid:\t0";
}

// Reads until the text has come; all that was read.
std::string read_until(const Fd& fd, std::string_view text) {
  std::string all;
  const auto deadline = Deadline::in(kSoon);
  while (all.find(text) == all.npos) {
    pollfd ready{fd.get(), POLLIN, 0};
    std::array<char, 4096> buffer;
    const bool some = ::poll(&ready, 1, deadline.poll_timeout_ms()) > 0;
    const ssize_t n = some ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
    if (n <= 0) break;
    all.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return all;
}

}  // namespace

TEST_CASE("what /proc says of a process is understood") {
  Evidence evidence;
  parse_stat(
      "3786 (a (b) c) S 3647 3647 32641 0 -1 4194304 129 0 0 0 250 50 0 0 20 0 7 0 1689172 2990080 "
      "414 18446744073709551615 94673820798976 94673820816905 0 0 0 0 0 6 0 1 0 0 17 0 0 0\n",
      evidence);
  CHECK(evidence.command == "a (b) c");
  CHECK(evidence.state == 'S');
  CHECK(evidence.state_text() == "sleeping");
  CHECK(evidence.started == 1689172);
  CHECK(evidence.threads == 7);
  CHECK(evidence.cpu_ms == 300 * 1000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));

  parse_status(
      "Name:\tsleep\nVmPeak:\t    2920 kB\nVmHWM:\t    1828 kB\nVmRSS:\t    1500 kB\n"
      "SigIgn:\t0000000000000006\nSigCgt:\t0000200000000002\n",
      evidence);
  CHECK(evidence.rss_bytes == 1500 * 1024);
  CHECK(evidence.peak_rss_bytes == 1828 * 1024);
  CHECK(evidence.has_python_dump);  // the 46th bit: 34 + 12
  parse_status("SigCgt:\tffffdfffffffffff\n", evidence);
  CHECK_FALSE(evidence.has_python_dump);

  CHECK(parse_syscall("61 0xffffffff 0x7ffe 0x0") == (SYS_wait4 == 61 ? "wait4" : ""));
  CHECK(parse_syscall("running\n") == "");
  CHECK(parse_syscall("") == "");
  CHECK(maps_have_python("7f00-7f01 r-xp 0 08:01 1 /usr/lib/libpython3.11.so.1.0\n"));
  CHECK_FALSE(maps_have_python("7f00-7f01 r-xp 0 08:01 1 /usr/lib/libc.so.6\n"));
}

TEST_CASE("what is not as /proc has it is left out") {
  Evidence evidence;
  for (const auto* broken : {"", "1", "1 (", "1 )(", "1 ()", "1 (a) S", "1 (a) SS 1 1 1 1 1 1"}) {
    parse_stat(broken, evidence);
    parse_status(broken, evidence);
  }
  CHECK(evidence == Evidence{});
  CHECK(evidence.state_text() == "gone");
}

TEST_CASE("evidence travels") {
  Evidence evidence{
      .pid = 7, .command = "x", .state = 'S', .frames = {"a (b)", "c"}, .python = true};
  CHECK(*decode<Evidence>(encode(evidence)) == evidence);
}

TEST_CASE("a frame is a readable name and its library") {
  CHECK(frame_text("read", "/usr/lib/libc.so.6") == "read (libc.so.6)");
  CHECK(frame_text("_ZN5corro5spawnERKNS_12SpawnRequestE", "/bin/horovodrun") ==
        "corro::spawn(corro::SpawnRequest const&) (horovodrun)");
  CHECK(frame_text(nullptr, "/lib/libcuda.so.1") == "? (libcuda.so.1)");
  CHECK(frame_text(nullptr, "") == "?");
  CHECK(frame_text(std::string(5000, 'x').c_str(), std::string(5000, 'y')).size() < 200);
  CHECK(is_interpreter("_PyEval_EvalFrameDefault (libpython3.11.so.1.0)"));
  CHECK(is_interpreter("PyObject_Call (python3.11)"));
  CHECK_FALSE(is_interpreter("PyArray_New (_multiarray_umath.so)"));
}

TEST_CASE("a worker that sleeps is seen sleeping, and sleeps on") {
  const Child child(start_sleep());
  REQUIRE(wait_until([&] { return sleeps(child.pid()); }));
  const auto evidence = examine_now(child.pid());
  CHECK(evidence.pid == child.pid());
  CHECK(evidence.command == "sleep");
  CHECK(evidence.state_text() == "sleeping");
  CHECK(evidence.threads == 1);
  CHECK(evidence.descendants == 0);
  CHECK(evidence.rss_bytes > 0);
  CHECK(evidence.peak_rss_bytes >= evidence.rss_bytes);
  CHECK(evidence.waits_in == "clock_nanosleep");
  CHECK_FALSE(evidence.python);
  CHECK_FALSE(evidence.has_python_dump);
  if (stacks_can_be_read()) {
    CHECK(has_frame(evidence, "nanosleep (libc"));
    CHECK(has_frame(evidence, "(sleep)"));
    CHECK(evidence.frames.size() <= kFramesMost);
  }
  CHECK(is_free(child.pid()));
  CHECK(
      wait_until([&] { return line_of_status(child.pid(), "State:") == "State:\tS (sleeping)"; }));
}

TEST_CASE("who has only the number of the one that was examined is not asked for stacks") {
  Child child(start_sleep());
  auto evidence = examine_now(child.pid());
  evidence.has_python_dump = true;
  const auto has_ended = [&](int wait) {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT | wait);
    return info.si_pid != 0;
  };
  auto another = evidence;
  ++another.started;
  ask_for_python_stacks(another);
  CHECK_FALSE(has_ended(WNOHANG));
  ask_for_python_stacks(evidence);
  CHECK(has_ended(0));  // sleep does not know the signal
}

TEST_CASE("a worker that computes is seen where it does") {
  const volatile int forever = 1;
  const Child child(fork_to([&] { corro_test_spins(&forever); }));
  REQUIRE(wait_until([&] { return examine_now(child.pid()).cpu_ms > 0; }));
  const auto evidence = examine_now(child.pid());
  CHECK(evidence.state_text() == "running");
  CHECK(evidence.waits_in == "");
  if (stacks_can_be_read()) {
    REQUIRE_FALSE(evidence.frames.empty());
    CHECK(has_frame(evidence, "corro_test_spins (unit_launcher)"));  // a sanitizer may be inside
  }
  CHECK(is_free(child.pid()));
}

TEST_CASE("a worker that was stopped stays stopped, and goes on when it may") {
  const Child child(start_sleep());
  ::kill(child.pid(), SIGSTOP);
  const auto stopped = [&] {
    return line_of_status(child.pid(), "State:").starts_with("State:\tT");
  };
  REQUIRE(wait_until(stopped));
  const auto evidence = examine_now(child.pid());
  CHECK(evidence.state_text() == "stopped");
  CHECK(evidence.command == "sleep");
  if (stacks_can_be_read()) CHECK_FALSE(evidence.frames.empty());
  CHECK(wait_until(stopped));
  CHECK(is_free(child.pid()));
  ::kill(child.pid(), SIGCONT);
  CHECK(wait_until([&] { return !stopped(); }));
}

TEST_CASE("of a worker that has ended there is little to see, and no error") {
  Child child(fork_to([] {}));
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT) == 0);
  auto evidence = examine_now(child.pid());
  CHECK(evidence.state_text() == "ended");
  CHECK(evidence.frames.empty());

  const pid_t pid = child.pid();
  child.end();
  evidence = examine_now(pid);
  CHECK(evidence.pid == pid);
  CHECK(evidence.state_text() == "gone");
}

TEST_CASE("behind a shell that waits the one that works is examined") {
  const Child child(start({.argv = {"/bin/sh", "-c", "/bin/sh -c 'sleep 60; true'; true"},
                           .env = {"PATH=/usr/bin:/bin"},
                           .cwd = {}}));
  Evidence evidence;
  CHECK(wait_until([&] { return (evidence = examine_now(child.pid())).command == "sleep"; }));
  CHECK(evidence.pid != child.pid());
  CHECK(evidence.descendants == 2);
}

TEST_CASE("a worker that computes is examined itself, though it has a child") {
  const volatile int forever = 1;
  const Child child(fork_to([&] {
    if (::fork() == 0) ::pause();
    corro_test_spins(&forever);
  }));
  Evidence evidence;
  CHECK(wait_until([&] { return (evidence = examine_now(child.pid())).descendants == 1; }));
  CHECK(evidence.pid == child.pid());
}

TEST_CASE("without permission there is what everybody may see") {
  if (::getuid() != 0) return;  // then it is another's process that is needed
  const Child child(start_sleep());
  REQUIRE(wait_until([&] { return sleeps(child.pid()); }));
  const Child stranger(fork_to([&] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    const auto evidence = examine_now(child.pid());
    const bool good = evidence.state == 'S' && evidence.command == "sleep" &&
                      evidence.rss_bytes > 0 && evidence.frames.empty();
    ::_exit(good ? 0 : 1);
  }));
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(stranger.pid()), &info, WEXITED | WNOWAIT) == 0);
  CHECK(info.si_status == 0);
}

TEST_CASE("many workers are told apart, and what is there in time is there") {
  std::vector<std::unique_ptr<Child>> children;
  std::vector<pid_t> pids = {1'000'000'000};  // no process has this number
  for (int i = 0; i < 12; ++i)
    pids.push_back(children.emplace_back(std::make_unique<Child>(start_sleep()))->pid());

  auto all = examine_all(pids, Deadline::in(kSoon));
  REQUIRE(all.size() == pids.size());
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i].pid == pids[i]);
  CHECK(all[0].state == 0);
  if (stacks_can_be_read())
    CHECK(std::all_of(all.begin() + 1, all.end(), [](const auto& e) { return !e.frames.empty(); }));

  // No time at all: their numbers, and all of them are left in peace.
  const auto start = Clock::now();
  all = examine_all(pids, Deadline::in(0s));
  CHECK(Clock::now() - start < 1s);
  REQUIRE(all.size() == pids.size());
  CHECK(all[1].pid == pids[1]);
  CHECK(examine_all({}, Deadline::in(kSoon)).empty());
  CHECK(wait_until([&] { return ::waitpid(-1, nullptr, WNOHANG) == 0; }));
  for (const auto& child : children) CHECK(wait_until([&] { return is_free(child->pid()); }));
}

TEST_CASE("an examination that is given up leaves nobody stopped or traced") {
  const volatile int forever = 1;
  const Child child(fork_to([&] { corro_test_spins(&forever); }));
  for (int us = 0; us < 40'000; us += 1'000) {
    Examination examination({child.pid()}, Deadline::in(kSoon));
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }  // killed here
  CHECK(wait_until([&] {
    return is_free(child.pid()) && line_of_status(child.pid(), "State:").starts_with("State:\tR");
  }));
}

TEST_CASE("Python is known as such, and tells its own stack when asked") {
  auto env = own_environment();
  if (!find_program("python3", env, "")) {
    test::not_tested("there is no python3 here");
    return;
  }
  const std::filesystem::path top = CORRO_TOP;
  std::erase_if(env, [](const std::string& e) { return e.starts_with("PYTHONPATH="); });
  env.push_back("PYTHONPATH=" + (top / "python").string());
  env.push_back("HOROVOD_RANK=0");
  Pipe out = *make_pipe(), err = *make_pipe();
  const auto run = [&](const std::string& program) {
    return start({.argv = {"python3", "-c", program},
                  .env = env,
                  .cwd = {},
                  .out = out.write_end.get(),
                  .err = err.write_end.get()});
  };
  const std::string work =
      "import time\n"
      "def the_work():\n"
      "    print('here', flush=True)\n"
      "    while True: time.sleep(60)\n"
      "the_work()\n";

  SECTION("with corro") {
    const Child child(run("import corro\n" + work));
    CHECK_THAT(read_until(out.read_end, "here"), Catch::Matchers::StartsWith("here"));
    const auto evidence = examine_now(child.pid());
    CHECK(evidence.python);
    REQUIRE(evidence.has_python_dump);
    if (stacks_can_be_read()) CHECK_FALSE(evidence.frames.empty());
    for (const auto& frame : evidence.frames) UNSCOPED_INFO(frame);

    for (int i = 0; i < 2; ++i) {
      REQUIRE(::kill(evidence.pid, python_dump_signal()) == 0);
      CHECK(read_until(err.read_end, "in <module>").find("in the_work") != std::string::npos);
    }
    CHECK(examine_now(child.pid()).state == 'S');
  }
  SECTION("without corro") {
    const Child child(run(work));
    CHECK_THAT(read_until(out.read_end, "here"), Catch::Matchers::StartsWith("here"));
    const auto evidence = examine_now(child.pid());
    CHECK(evidence.python);
    CHECK_FALSE(evidence.has_python_dump);
  }
  SECTION("in a script that has a use for the signal itself") {
    const Child child(
        run("import os, signal\n"
            "signal.signal(signal.SIGRTMIN + 12, lambda *_: os.write(1, b'mine'))\n"
            "import corro\n" +
            work));
    CHECK_THAT(read_until(out.read_end, "here"), Catch::Matchers::StartsWith("here"));
    REQUIRE(::kill(child.pid(), python_dump_signal()) == 0);
    CHECK(read_until(out.read_end, "mine").find("mine") != std::string::npos);
  }
}

TEST_CASE("what it takes to examine 64 processes", "[.][cost]") {
  std::vector<std::unique_ptr<Child>> children;
  std::vector<pid_t> pids;
  const std::string what = std::getenv("CORRO_EXAMINE") ? std::getenv("CORRO_EXAMINE") : "sleep 60";
  for (int i = 0; i < 64; ++i)
    pids.push_back(
        children
            .emplace_back(std::make_unique<Child>(start(
                {.argv = {"/bin/sh", "-c", "exec " + what}, .env = own_environment(), .cwd = {}})))
            ->pid());
  std::this_thread::sleep_for(5s);
  for (int i = 0; i < 3; ++i) {
    const auto start_time = Clock::now();
    const auto all = examine_all(pids, Deadline::in(60s));
    const std::chrono::duration<double, std::milli> took = Clock::now() - start_time;
    const auto with =
        std::count_if(all.begin(), all.end(), [](const auto& e) { return !e.frames.empty(); });
    WARN(took.count() << " ms, with stacks: " << with << " of " << all.size());
    if (i == 0)
      for (const auto& frame : all[0].frames) WARN(frame);
  }
}

}  // namespace corro::agent
