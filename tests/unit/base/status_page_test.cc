#include "base/status_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <thread>

namespace corro {

namespace {

StatusPage make_page() {
  auto page = StatusBoard().next();
  REQUIRE(page);
  return std::move(*page);
}

StatusWriter writer_of(const StatusPage& page) {
  return StatusWriter::open(page.handle(page.fd()).c_str());
}

std::string handle_of(const Fd& fd) {
  return std::to_string(fd.get()) + ":0";
}

template <class Body>
int in_a_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("a page on which nobody has written says nothing") {
  const auto page = make_page();
  CHECK(page.read() == Status{});
  CHECK_FALSE(page.read().said_anything());
  CHECK_FALSE(page.read().under_way());
}

TEST_CASE("what a worker does can be read, and when it said so") {
  const auto page = make_page();
  auto writer = writer_of(page);
  REQUIRE(writer);
  const auto before = Clock::now();

  writer.begin("allreduce(sum of 16 f64)");
  auto status = page.read();
  CHECK(status.text == "allreduce(sum of 16 f64), call 1");
  CHECK(status.under_way());
  CHECK(status.begun == 1);
  CHECK(status.finished == 0);
  CHECK(status.changed() >= before);
  CHECK(status.changed() <= Clock::now());

  writer.finish();
  status = page.read();
  CHECK(status.text == "allreduce(sum of 16 f64), call 1");
  CHECK_FALSE(status.under_way());
  CHECK(status.finished == 1);

  writer.begin_again();
  CHECK(page.read().text == "allreduce(sum of 16 f64), call 2");
  CHECK(page.read().under_way());
  writer.finish(true);
  CHECK(page.read().text == "allreduce(sum of 16 f64), call 2, which failed");
  CHECK_FALSE(page.read().under_way());

  writer.begin("barrier()");
  CHECK(page.read().text == "barrier(), call 3");
  writer.say("barrier(), waiting for rank 3");
  CHECK(page.read().text == "barrier(), waiting for rank 3");
  CHECK(page.read().begun == 3);
}

TEST_CASE("each worker has a page of its own, also when there are more than fit into a file") {
  StatusBoard board;
  std::vector<StatusPage> pages;
  for (int i = 0; i < 150; ++i) pages.push_back(*board.next());
  for (std::size_t i = 0; i < pages.size(); ++i) writer_of(pages[i]).say(std::to_string(i));
  for (std::size_t i = 0; i < pages.size(); ++i) CHECK(pages[i].read().text == std::to_string(i));
}

TEST_CASE("a second writer of the worker counts on") {
  const auto page = make_page();
  auto first = writer_of(page), second = writer_of(page);
  first.begin("a");
  first.finish();
  second.begin("b");
  CHECK(page.read().begun == 2);
  CHECK(page.read().finished == 1);
}

TEST_CASE("a text that is too long is cut between two characters") {
  const auto page = make_page();
  auto writer = writer_of(page);
  writer.say(std::string(kStatusTextBytes + 1, 'x'));
  CHECK(page.read().text == std::string(kStatusTextBytes, 'x'));
  writer.say(std::string(kStatusTextBytes - 1, 'x') + "\u00e4");
  CHECK(page.read().text == std::string(kStatusTextBytes - 1, 'x'));
  writer.say("");
  CHECK(page.read().text == "");
}

TEST_CASE("what is read can be printed") {
  const auto page = make_page();
  writer_of(page).say("a\nb\x1b[2J\u00e4");
  CHECK(page.read().text == "a?b?[2J\u00e4");
}

TEST_CASE("the words of a worker outlive it") {
  const auto page = make_page();
  const int status = in_a_child([&] {
    writer_of(page).begin("barrier()");
    ::raise(SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  CHECK(page.read().text == "barrier(), call 1");
  CHECK(page.read().under_way());
}

TEST_CASE("a child that the worker forks says nothing in its name") {
  const auto page = make_page();
  auto writer = writer_of(page);
  writer.begin("the worker's");
  CHECK(in_a_child([&] {
          writer.say("the child's");
          writer.begin("the child's");
          writer.finish();
        }) == 0);
  CHECK(page.read().text == "the worker's, call 1");
  CHECK(page.read().under_way());
  writer.finish();
  CHECK(page.read().finished == 1);
}

TEST_CASE("a child that the worker executes does not get the descriptor") {
  const auto page = make_page();
  const Fd handed(::fcntl(page.fd(), F_DUPFD, 3));
  REQUIRE(::fcntl(handed.get(), F_GETFD) == 0);
  REQUIRE(StatusWriter::open(page.handle(handed.get()).c_str()));
  CHECK(::fcntl(handed.get(), F_GETFD) == FD_CLOEXEC);
}

TEST_CASE("what is no status page is left alone") {
  for (const char* number : {"", "x", "-1:0", "99999:0", "3x:0", "9999999999999999999:0", ":", "0"})
    CHECK_FALSE(StatusWriter::open(number));
  CHECK_FALSE(StatusWriter::open(nullptr));

  const Fd nothing(::open("/dev/null", O_RDWR));
  CHECK_FALSE(StatusWriter::open(handle_of(nothing).c_str()));
  CHECK(::fcntl(nothing.get(), F_GETFD) == 0);  // nor is anything set on it

  const Fd plain(::memfd_create("another", MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(plain.get(), 64 * 4096) == 0);
  CHECK_FALSE(StatusWriter::open(handle_of(plain).c_str()));
  REQUIRE(::fcntl(plain.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  CHECK_FALSE(StatusWriter::open(handle_of(plain).c_str()));

  const auto page = make_page();
  for (const auto* index : {"-1", "1", "63", "64", "9999999999999999999", "", "0:0"})
    CHECK_FALSE(StatusWriter::open(fmt::format("{}:{}", page.fd(), index).c_str()));

  StatusWriter nobody;
  nobody.begin("x");
  nobody.finish();
  CHECK_FALSE(nobody);
}

TEST_CASE("a worker cannot take the page from under its reader") {
  const auto page = make_page();
  CHECK(::ftruncate(page.fd(), 0) != 0);
  CHECK(page.read() == Status{});
}

TEST_CASE("whatever the moment, what is read is one whole thing that was said") {
  const auto page = make_page();
  std::atomic<bool> stop = false;
  std::thread worker([&] {
    auto writer = writer_of(page);
    for (unsigned i = 0; !stop; ++i) {
      // Every other operation is described as the one before it.
      if (i % 2 == 0)
        writer.begin(
            std::string(1 + i / 2 % kStatusTextBytes, static_cast<char>('a' + i / 2 % 26)));
      else
        writer.begin_again();
      if (i % 3 == 0) writer.finish();
      // An operation takes longer than a look; under a sanitizer, looks are slow.
      if (i % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(1));
    }
  });
  int torn = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto status = page.read();
    if (status.begun == 0) continue;
    const auto call = status.begun - 1;
    const std::string said =
        std::string(1 + call / 2 % kStatusTextBytes, static_cast<char>('a' + call / 2 % 26)) +
        ", call " + std::to_string(call + 1);
    const bool finished = status.finished == status.begun;
    if (status.text != said || (finished && call % 3 != 0)) ++torn;
  }
  stop = true;
  worker.join();
  CHECK(torn == 0);
}

TEST_CASE("what it costs to say something", "[.][cost]") {
  const auto page = make_page();
  auto writer = writer_of(page);
  constexpr int kCalls = 1'000'000;
  const auto start = Clock::now();
  writer.begin("allreduce(sum of 1000000 f32)");
  for (int i = 0; i < kCalls; ++i) {
    writer.begin_again();
    writer.finish();
  }
  const auto took = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  WARN("begin_again and finish: " << took / kCalls << " ns");
}

}  // namespace corro
