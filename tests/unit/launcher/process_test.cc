#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fd.h"
#include "base/text.h"
#include "tests/support/folder.h"

namespace corro {

namespace {

namespace fs = std::filesystem;

using Strings = std::vector<std::string>;

// A folder of its own for each test, with programs in it.
struct Folder : test::Folder {
  std::string operator/(const std::string& name) const { return path() + "/" + name; }

  std::string program(const std::string& name, const std::string& text = "#!/bin/sh\n") const {
    const std::string path = plain(name, text);
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  std::string plain(const std::string& name, const std::string& text = "") const {
    put(name, text);
    return *this / name;
  }
};

ExitStatus wait_for(pid_t pid) {
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  const auto ended = reap(pid);
  REQUIRE(ended);
  CHECK(ended->pid == pid);
  return ended->status;
}

std::string all_from(const Fd& fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t n; (n = ::read(fd.get(), buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(n));
  return text;
}

// What it writes to its stdout, until its end.
std::string output_of(SpawnRequest request) {
  Pipe pipe = *make_pipe();
  request.out = pipe.write_end.get();
  const auto pid = spawn(request);
  REQUIRE(pid);
  pipe.write_end.reset();
  const std::string text = all_from(pipe.read_end);
  CHECK(wait_for(*pid) == ExitStatus::exited(0));
  return text;
}

SpawnRequest shell(const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script}, .env = {"PATH=/usr/bin:/bin"}, .cwd = {}};
}

Error refusal(const SpawnRequest& request) {
  const auto pid = spawn(request);
  REQUIRE_FALSE(pid);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);  // nor is a child left
  return pid.error();
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

// Fields of /proc/self/stat from the state on.
std::vector<long long> numbers_of_stat(const std::string& stat) {
  std::vector<long long> out;
  for (const auto field : split(std::string_view(stat).substr(stat.rfind(')') + 4), ' '))
    out.push_back(parse_int(field).value_or(0));
  return out;
}

}  // namespace

TEST_CASE("a program is found as a shell finds it") {
  const Folder folder;
  folder.program("one/tool");
  folder.program("two/tool");
  folder.plain("plain/tool");
  fs::create_directories(folder / "folder/tool");
  const auto found = [&](const std::string& name, const std::string& path,
                         const std::string& cwd = "/") {
    const auto program = find_program(name, {"HOME=/", "PATH=" + path}, cwd);
    return program ? *program : std::string(name_of(program.error().code()));
  };
  const std::string one = folder / "one", two = folder / "two", plain = folder / "plain";

  SECTION("in the folders of PATH, in their order") {
    CHECK(found("tool", one + ":" + two) == one + "/tool");
    CHECK(found("tool", "/nowhere:" + two + ":" + one) == two + "/tool");
  }
  SECTION("past what is a folder or may not be executed") {
    CHECK(found("tool", folder / "folder" + ":" + plain + ":" + two) == two + "/tool");
    CHECK(found("tool", plain) == "unsupported");
    CHECK(found("tool", folder / "folder") == "not found");
  }
  SECTION("from the working directory, if PATH says so") {
    CHECK(found("tool", "", one) == one + "/tool");
    CHECK(found("tool", "/nowhere:", one) == one + "/tool");
    CHECK(found("tool", "one", folder.path()) == folder / "one/tool");
  }
  SECTION("by its path, if it has a slash, whatever PATH says") {
    CHECK(found(one + "/tool", "/nowhere") == one + "/tool");
    CHECK(found("./tool", two, one) == one + "/./tool");
    CHECK(found("one/tool", two, folder.path()) == folder / "one/tool");
    CHECK(found("./tool", one, "/") == "not found");
    CHECK(found("", one) == "not found");
  }
  SECTION("in the usual places, if there is no PATH") {
    CHECK(find_program("sh", {"PATHS=/nowhere", "XPATH=/nowhere"}, "/"));
  }
}

TEST_CASE("what is not found is said with its name") {
  const Folder folder;
  const std::string plain = folder.plain("plain");
  CHECK(find_program("no-such-program", {"PATH=/usr/bin"}, "/").error() ==
        Error(Errc::not_found, "there is no program no-such-program in PATH"));
  CHECK(find_program("./no-such-program", {}, "/").error() ==
        Error(Errc::not_found, "there is no program ./no-such-program"));
  CHECK(find_program(plain, {}, "/").error() ==
        Error(Errc::unsupported, plain + " may not be executed"));
}

TEST_CASE("arguments and environment arrive byte for byte, and nothing else does") {
  const std::string odd = "a b\n\t'\"$(id)`\\=*\xff\x01";
  const std::string zero(1, '\0');

  SpawnRequest request = shell("cat /proc/$$/cmdline");
  request.argv.insert(request.argv.end(), {odd, "", "-np"});
  CHECK(output_of(request) ==
        "/bin/sh" + zero + "-c" + zero + request.argv[2] + zero + odd + zero + zero + "-np" + zero);

  request = shell("cat /proc/$$/environ");
  request.env = {"PATH=/usr/bin:/bin", "ODD=" + odd, "EMPTY="};
  CHECK(output_of(request) == "PATH=/usr/bin:/bin" + zero + "ODD=" + odd + zero + "EMPTY=" + zero);
}

TEST_CASE("a program runs where it is told to, else where we are") {
  const Folder folder;
  SpawnRequest request = shell("pwd -P");
  CHECK(output_of(request) == fs::current_path().string() + "\n");
  request.cwd = folder.path();
  CHECK(output_of(request) == folder.path() + "\n");

  folder.program("here", "#!/bin/sh\necho here\n");
  request.argv = {"./here"};
  CHECK(output_of(request) == "here\n");
}

TEST_CASE("a program has three descriptors and no other") {
  const Fd inherited(
      ::open("/dev/null", O_RDONLY));  // not close-on-exec, as a careless library leaves it
  const Fd high(::fcntl(inherited.get(), F_DUPFD, 200));
  REQUIRE(high);
  CHECK(output_of(
            shell("for i in $(seq 3 255); do [ -e /proc/$$/fd/$i ] && echo $i; done; true")) == "");
}

TEST_CASE("a program has one more descriptor, if asked to, whatever numbers are in use here") {
  const Fd text(::memfd_create("text", MFD_CLOEXEC));
  REQUIRE(::write(text.get(), "text", 4) == 4);
  SpawnRequest request = shell(fmt::format("cat /proc/$$/fd/{}", kExtraFd));

  SECTION("any number") {
    request.extra = text.get();
    CHECK(output_of(request) == "text");
  }
  SECTION("the very same number") {
    const Fd same(::fcntl(text.get(), F_DUPFD_CLOEXEC, kExtraFd));
    REQUIRE(same.get() == kExtraFd);
    request.extra = same.get();
    CHECK(output_of(request) == "text");
  }
  SECTION("a number that something else has") {
    std::vector<Fd> others;  // one of those that spawn opens will be in the way
    while (others.empty() || others.back().get() < kExtraFd - 3)
      others.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    request.extra = text.get();
    for (int more = 0; more < 6; ++more) {
      CHECK(output_of(request) == "text");
      SpawnRequest wrong = request;
      wrong.cwd = "/no/such/folder";
      CHECK_FALSE(spawn(wrong));  // the reason still gets through
      others.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
  }
}

TEST_CASE("a program runs also where there is no room for one more descriptor") {
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few{kExtraFd - 1, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  SpawnRequest request = shell("echo here");
  request.extra = nothing.get();
  const std::string text = output_of(request);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(text == "here\n");
}

TEST_CASE("stdin, stdout and stderr are the ones that were given") {
  Pipe in = *make_pipe(), out = *make_pipe(), err = *make_pipe();
  SpawnRequest request = shell("cat; echo error >&2");
  request.in = in.read_end.get();
  request.out = out.write_end.get();
  request.err = err.write_end.get();
  const auto pid = spawn(request);
  REQUIRE(pid);
  in.read_end.reset();
  out.write_end.reset();
  err.write_end.reset();
  REQUIRE(::write(in.write_end.get(), "text", 4) == 4);
  in.write_end.reset();
  CHECK(all_from(out.read_end) == "text");
  CHECK(all_from(err.read_end) == "error\n");
  CHECK(wait_for(*pid).ok());
}

TEST_CASE("signals that are blocked or ignored here are neither there") {
  struct sigaction ignored {
  }, before{};
  ignored.sa_handler = SIG_IGN;
  sigset_t usr2, mask;
  ::sigemptyset(&usr2);
  ::sigaddset(&usr2, SIGUSR2);
  ::sigaction(SIGUSR1, &ignored, &before);
  ::pthread_sigmask(SIG_BLOCK, &usr2, &mask);
  const std::string status =
      output_of({.argv = {"cat", "/proc/self/status"}, .env = {}, .cwd = {}});
  CHECK(::sigismember(&mask, SIGUSR2) == 0);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGUSR1, &before, nullptr);
  CHECK(status.find("SigBlk:\t0000000000000000") != status.npos);
  CHECK(status.find("SigIgn:\t0000000000000000") != status.npos);
}

TEST_CASE("a program has a process group of its own, or a session") {
  SpawnRequest request{.argv = {"cat", "/proc/self/stat"}, .env = {}, .cwd = {}};
  enum { parent, group, session };  // as they stand in stat

  auto numbers = numbers_of_stat(output_of(request));
  CHECK(numbers[parent] == ::getpid());
  CHECK(numbers[group] != ::getpgrp());
  CHECK(numbers[session] == ::getsid(0));

  request.new_session = true;
  numbers = numbers_of_stat(output_of(request));
  CHECK(numbers[group] == numbers[session]);
  CHECK(numbers[session] != ::getsid(0));
}

TEST_CASE("a program runs on the CPUs that it is given, else where we run") {
  const auto cpus_of = [](const SpawnRequest& request) {
    const std::string status = output_of(request), title = "Cpus_allowed_list:\t";
    const auto begin = status.find(title) + title.size();
    return status.substr(begin, status.find('\n', begin) - begin);
  };
  SpawnRequest request{.argv = {"cat", "/proc/self/status"}, .env = {}, .cwd = {}};
  cpu_set_t own;
  REQUIRE(::sched_getaffinity(0, sizeof own, &own) == 0);
  std::vector<int> all;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &own)) all.push_back(cpu);

  CHECK(cpus_of(request) == number_ranges(all));
  request.cpus = {all.back()};
  CHECK(cpus_of(request) == std::to_string(all.back()));
  request.cpus = {all.back(), 5000};  // the kernel takes those that exist
  CHECK(cpus_of(request) == std::to_string(all.back()));
  cpu_set_t after;
  REQUIRE(::sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&own, &after));
}

TEST_CASE("a program ends with the thread that started it, if asked to") {
  Pipe never = *make_pipe();
  SpawnRequest request{.argv = {"cat"}, .env = {}, .cwd = {}};
  request.in = never.read_end.get();
  request.death_signal = SIGKILL;
  pid_t pid = 0;
  std::thread([&] { pid = *spawn(request); }).join();
  CHECK(wait_for(pid) == ExitStatus::killed(SIGKILL));
}

TEST_CASE("what cannot be executed is said, and whose fault it is") {
  const Folder folder;
  SpawnRequest request{.argv = {"/bin/true"}, .env = {}, .cwd = {}};
  const auto descriptors = open_descriptors();

  SECTION("no program at all") {
    request.argv = {};
    CHECK(refusal(request).code() == Errc::invalid_input);
  }
  SECTION("one that is not there") {
    request.argv = {"/no/such/program"};
    CHECK(refusal(request) == Error(Errc::not_found, "there is no program /no/such/program"));
  }
  SECTION("one that may not be executed") {
    request.argv = {folder.plain("plain")};
    CHECK(refusal(request) == Error(Errc::unsupported, request.argv[0] + " may not be executed"));
  }
  SECTION("one that is no program") {
    request.argv = {folder.program("text", "just text")};
    CHECK(refusal(request) ==
          Error(Errc::unsupported, "executing " + request.argv[0] + ": Exec format error"));
  }
  SECTION("one whose interpreter is not there") {
    request.argv = {folder.program("script", "#!/no/such/python\n")};
    CHECK(refusal(request) ==
          Error(Errc::unsupported, request.argv[0] + " names an interpreter that is not there"));
  }
  SECTION("an argument that is larger than the system takes") {
    request.argv.emplace_back(200 << 10, 'x');
    CHECK(refusal(request) ==
          Error(Errc::unsupported, "executing /bin/true: Argument list too long"));
  }
  SECTION("a folder to run in that is not there") {
    request.cwd = "/no/such/folder";
    CHECK(refusal(request) ==
          Error(Errc::io, "changing to /no/such/folder: No such file or directory"));
  }
  SECTION("CPUs that are not there") {
    request.cpus = {5000, 5001, 5003};
    CHECK(refusal(request) ==
          Error(Errc::io, "binding /bin/true to CPUs 5000-5001,5003: Invalid argument"));
  }
  SECTION("CPUs that cannot be") {
    request.cpus = {GENERATE(-1, 1 << 30)};
    CHECK(refusal(request) == Error(Errc::invalid_input, "a CPU has a number that no CPU has"));
  }
  SECTION("a descriptor that is none") {
    request.out = 9999;
    CHECK(refusal(request) == Error(Errc::io, "starting /bin/true: Bad file descriptor"));
  }
  CHECK(open_descriptors() == descriptors);
}

TEST_CASE("starting a program leaves no descriptor behind") {
  const auto before = open_descriptors();
  for (int i = 0; i < 5; ++i) wait_for(*spawn({.argv = {"/bin/true"}, .env = {}, .cwd = {}}));
  CHECK(open_descriptors() == before);
}

TEST_CASE("nothing that was given to a program stays open with whoever started it") {
  Spawner spawner;
  Pipe in = *make_pipe(), out = *make_pipe(), err = *make_pipe();
  SpawnRequest request = shell("cat >/dev/null; echo out; echo err >&2");
  request.in = in.read_end.get();
  request.out = out.write_end.get();
  request.err = err.write_end.get();
  const auto pid = spawner.spawn(request);
  REQUIRE(pid);
  for (Fd* end : {&in.read_end, &in.write_end, &out.write_end, &err.write_end}) end->reset();
  CHECK(all_from(out.read_end) == "out\n");
  CHECK(all_from(err.read_end) == "err\n");
  CHECK(wait_for(*pid).ok());
  request.cwd = "/no/such/folder";
  request.in = 9999;
  CHECK_FALSE(spawner.spawn(request));
  CHECK(wait_for(*spawner.spawn({.argv = {"/bin/true"}, .env = {}, .cwd = {}})).ok());
}

TEST_CASE("an end is told as it was") {
  CHECK(wait_for(*spawn(shell("exit 3"))) == ExitStatus::exited(3));
  CHECK(wait_for(*spawn(shell("exit 255"))) == ExitStatus::exited(255));
  CHECK(wait_for(*spawn(shell("kill -9 $$"))) == ExitStatus::killed(SIGKILL));
  CHECK(wait_for(*spawn(shell("ulimit -c 0; kill -11 $$"))) == ExitStatus::killed(SIGSEGV));
  CHECK(ExitStatus::exited(3).text() == "exited with code 3");
  CHECK(ExitStatus::killed(SIGSEGV).text() == "was killed by SIGSEGV");
  CHECK(ExitStatus::killed(SIGSEGV).shell_code() == 139);
  CHECK(ExitStatus::exited(7).shell_code() == 7);
}

TEST_CASE("only what has ended is reaped, and each once") {
  Pipe in = *make_pipe();
  SpawnRequest waits{.argv = {"cat"}, .env = {}, .cwd = {}};
  waits.in = in.read_end.get();
  const pid_t lives = *spawn(waits), ends = *spawn(shell("exit 4"));
  CHECK_FALSE(reap(lives));
  CHECK(wait_for(ends) == ExitStatus::exited(4));
  CHECK_FALSE(reap(ends));
  CHECK_FALSE(reap());
  in.write_end.reset();
  CHECK(wait_for(lives).ok());
  CHECK_FALSE(reap());
}

TEST_CASE("what a process and its children have used is known when it is reaped") {
  constexpr auto* kHungry = "dd if=/dev/zero of=/dev/null bs=32M count=1 2>/dev/null; exit 4";
  const pid_t pid = *spawn(shell(kHungry));
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  const auto ended = reap(pid);
  REQUIRE(ended);
  CHECK(ended->status == ExitStatus::exited(4));
  CHECK(ended->used.peak_rss_bytes >= 32 << 20);
  CHECK(ended->used.cpu_ms > 0);
}

TEST_CASE("children are known from their start until they are reaped") {
  const auto is_child = [](pid_t pid) {
    const auto all = children();
    return std::count(all.begin(), all.end(), pid) == 1;
  };
  Pipe in = *make_pipe();
  // A name with blanks and parentheses must not hide it.
  const Folder folder;
  fs::copy_file("/bin/cat", folder / "a) R 1 (b");
  SpawnRequest request{.argv = {folder / "a) R 1 (b"}, .env = {}, .cwd = {}};
  request.in = in.read_end.get();
  const pid_t pid = *spawn(request);
  CHECK(is_child(pid));
  in.write_end.reset();
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  CHECK(is_child(pid));
  CHECK(reap(pid));
  CHECK_FALSE(is_child(pid));
  CHECK_FALSE(is_child(::getpid()));
}

}  // namespace corro
