#include "base/loop.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <thread>

#include "base/fd.h"
#include "tests/unit/base/connected_pair.h"

namespace corro {

namespace {

using namespace std::chrono_literals;

void write_byte(const Fd& fd) {
  REQUIRE(::write(fd.get(), "x", 1) == 1);
}

void read_byte(const Fd& fd) {
  char byte;
  REQUIRE(::read(fd.get(), &byte, 1) == 1);
}

// Lets everything happen that is ready to.
void settle(Loop& loop) {
  const auto end = loop.at(loop.now() + 1ms, [&] { loop.stop(); });
  loop.run();
}

}  // namespace

TEST_CASE("timers go off in the order of their times, and not before") {
  Loop loop;
  std::string order;
  const auto start = loop.now();
  const auto last = loop.at(start + 3ms, [&] {
    CHECK(loop.now() >= start + 3ms);
    order += 'c';
    loop.stop();
  });
  const auto first = loop.at(start + 1ms, [&] { order += 'a'; });
  const auto second = loop.at(start + 2ms, [&] { order += 'b'; });
  loop.run();
  CHECK(order == "abc");
}

TEST_CASE("a timer that is destroyed does not go off") {
  Loop loop;
  bool rang = false;
  {
    const auto timer = loop.at(loop.now(), [&] { rang = true; });
  }
  settle(loop);
  CHECK_FALSE(rang);
}

TEST_CASE("a timer may set itself again, and may end itself, when it goes off") {
  Loop loop;
  int rings = 0;
  Loop::Timer timer;
  std::function<void()> ring = [&] {
    timer = {};
    if (++rings == 3) return loop.stop();
    timer = loop.at(loop.now(), ring);
  };
  timer = loop.at(loop.now(), ring);
  loop.run();
  CHECK(rings == 3);
}

TEST_CASE("a watch calls back as long as there is something to read") {
  Loop loop;
  const Pair pair = connected_pair();
  for (int i = 0; i < 3; ++i) write_byte(pair.b);
  int calls = 0;
  const auto watch = loop.watch(pair.a.get(), Ready::read, [&] {
    read_byte(pair.a);
    if (++calls == 3) loop.stop();
  });
  loop.run();
  settle(loop);
  CHECK(calls == 3);

  write_byte(pair.b);
  settle(loop);
  CHECK(calls == 4);
}

TEST_CASE("a watch may be destroyed in its own callback, and its descriptor closed") {
  Loop loop;
  Pair pair = connected_pair();
  write_byte(pair.b);
  int calls = 0;
  Loop::Watch watch;
  watch = loop.watch(pair.a.get(), Ready::read, [&] {
    watch = {};
    pair.a.reset();
    ++calls;
  });
  settle(loop);
  CHECK(calls == 1);
  CHECK_FALSE(watch);
}

TEST_CASE("a watch may be replaced in its own callback by one of the same descriptor") {
  Loop loop;
  const Pair pair = connected_pair();
  write_byte(pair.b);
  std::string calls;
  Loop::Watch watch;
  watch = loop.watch(pair.a.get(), Ready::read, [&] {
    calls += 'a';
    watch = loop.watch(pair.a.get(), Ready::read, [&] {
      calls += 'b';
      watch = {};
    });
  });
  settle(loop);
  CHECK(calls == "ab");
}

TEST_CASE("one descriptor may be watched for reading and for writing, each by itself") {
  Loop loop;
  const Pair pair = connected_pair();
  int reads = 0, writes = 0;
  const auto readable = loop.watch(pair.a.get(), Ready::read, [&] {
    read_byte(pair.a);
    ++reads;
  });
  Loop::Watch writable;
  writable = loop.watch(pair.a.get(), Ready::write, [&] {
    ++writes;
    writable = {};
  });
  settle(loop);
  CHECK(writes == 1);
  CHECK(reads == 0);

  write_byte(pair.b);
  settle(loop);
  CHECK(reads == 1);

  writable = loop.watch(pair.a.get(), Ready::write, [&] {
    ++writes;
    writable = {};
  });
  settle(loop);
  CHECK(writes == 2);
}

TEST_CASE("a new descriptor that gets the number of a closed one is watched like any other") {
  Loop loop;
  Pair old = connected_pair();
  bool old_called = false, new_called = false;
  std::optional<Loop::Watch> watch =
      loop.watch(old.a.get(), Ready::read, [&] { old_called = true; });
  settle(loop);
  write_byte(old.b);  // so that an event of the old one may be under way
  watch.reset();

  Pair fresh = connected_pair();
  const int number = old.a.get();
  old.a.reset();
  REQUIRE(::dup3(fresh.a.get(), number, O_CLOEXEC) == number);
  const Fd same_number(number);
  watch = loop.watch(number, Ready::read, [&] {
    read_byte(same_number);
    new_called = true;
  });
  settle(loop);
  CHECK_FALSE(new_called);
  write_byte(fresh.b);
  settle(loop);
  CHECK(new_called);
  CHECK_FALSE(old_called);
  watch.reset();
}

TEST_CASE("a number may be closed and opened again many times in one callback") {
  Loop loop;
  int called = 0;
  std::optional<Loop::Watch> watch;
  loop.post([&] {
    Pair pair = connected_pair();
    for (int i = 0; i < 100; ++i) {
      watch = loop.watch(pair.a.get(), Ready::read, [&] { ++called; });
      watch.reset();
      pair = connected_pair();
      write_byte(pair.b);
    }
  });
  settle(loop);
  CHECK(called == 0);
}

TEST_CASE("watching leaves a descriptor blocking if it was") {
  Loop loop;
  const auto pipe = make_pipe();
  REQUIRE(pipe);
  const auto watch = loop.watch(pipe->read_end.get(), Ready::read, [] {});
  settle(loop);
  CHECK((::fcntl(pipe->read_end.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("what cannot be waited for is always ready") {
  Loop loop;
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int calls = 0;
  const auto watch = loop.watch(nothing.get(), Ready::read, [&] {
    if (++calls == 3) loop.stop();
  });
  loop.run();
  CHECK(calls == 3);
}

TEST_CASE("the end of a process can be watched") {
  Loop loop;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  REQUIRE(pidfd);
  const auto watch = loop.watch(pidfd.get(), Ready::read, [&] { loop.stop(); });
  loop.run();
  CHECK(::waitpid(child, nullptr, WNOHANG) == child);
}

TEST_CASE("what other threads post is run on the loop's thread, all of it") {
  Loop loop;
  constexpr int kThreads = 4, kEach = 500;
  int ran = 0;  // not atomic: only the loop's thread touches it
  const auto here = std::this_thread::get_id();
  bool elsewhere = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i)
        loop.post([&] {
          elsewhere = elsewhere || std::this_thread::get_id() != here;
          if (++ran == kThreads * kEach) loop.stop();
        });
    });
  loop.run();
  for (auto& thread : threads) thread.join();
  CHECK(ran == kThreads * kEach);
  CHECK_FALSE(elsewhere);
}

TEST_CASE("another thread can stop the loop, even before it runs") {
  Loop loop;
  std::thread([&] { loop.stop(); }).join();
  loop.run();

  std::thread stopper([&] { loop.post([&] { loop.stop(); }); });
  loop.run();
  stopper.join();
  SUCCEED();
}

TEST_CASE("a loop may end with things that never ran, and they end with it") {
  const Pair pair = connected_pair();
  auto owned = std::make_shared<int>();
  {
    Loop loop;
    auto watch = std::make_shared<Loop::Watch>(loop.watch(pair.a.get(), Ready::read, [] {}));
    auto timer = std::make_shared<Loop::Timer>(loop.at(loop.now() + 1h, [] {}));
    loop.post([watch, timer, owned] {});
    {
      const auto cancelled = loop.at(loop.now(), [owned] {});
    }
  }
  CHECK(owned.use_count() == 1);
}

}  // namespace corro
