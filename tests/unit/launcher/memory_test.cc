#include "launcher/job/memory.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/folder.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

const WallTime kNow = WallTime(1'800'000'000s);
const KnownWays kWays = {{"a", "10.0.0.1"}, {"b.example", "fd00::7"}, {"@launcher", "10.0.0.9"}};

}  // namespace

TEST_CASE("what was found out is known for an hour, to the same question") {
  const auto memory = remember("", "q1", kWays, kNow);
  CHECK(recall(memory, "q1", kNow) == kWays);
  CHECK(recall(memory, "q1", kNow + 59min) == kWays);
  CHECK_FALSE(recall(memory, "q1", kNow + 60min));
  CHECK_FALSE(recall(memory, "q1", kNow - 1s));  // somebody has put the clock back
  CHECK_FALSE(recall(memory, "q2", kNow));
}

TEST_CASE("the newest answer counts, and old ones go") {
  auto memory = remember("", "old", kWays, kNow - 2h);
  memory = remember(memory, "q1", {{"a", "1.1.1.1"}}, kNow - 1min);
  memory = remember(memory, "q2", kWays, kNow);
  memory = remember(memory, "q1", kWays, kNow);
  CHECK(recall(memory, "q1", kNow) == kWays);
  CHECK(recall(memory, "q2", kNow) == kWays);
  CHECK(memory.find("old") == memory.npos);
  for (int i = 0; i < 200; ++i) memory = remember(memory, "n" + std::to_string(i), kWays, kNow);
  CHECK(std::count(memory.begin(), memory.end(), '\n') == 64);
  CHECK(recall(memory, "n199", kNow) == kWays);
}

TEST_CASE("a memory that makes no sense is none") {
  for (const auto* text : {"", "\n\n", "q1", "q1 x a=b", "q1 1800000000", "q1 1800000000 ab", "\0",
                           "q1 -9223372036854775808 a=b"})
    CHECK_FALSE(recall(text, "q1", kNow));
  CHECK(recall(remember("rubbish\n\n", "q1", kWays, kNow), "q1", kNow) == kWays);
}

TEST_CASE("the file is nobody else's, or it is not used") {
  const test::Folder folder;
  const char* set = std::getenv("XDG_CACHE_HOME");
  const std::string before = set ? set : "";
  ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  const auto path = folder.path() + "/corro/ways";
  CHECK(read_memory().empty());
  write_memory("x\n");
  CHECK(read_memory() == "x\n");
  struct stat info;
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path() + "/corro"), {}) == 1);

  ::chmod(path.c_str(), 0644);
  CHECK(read_memory().empty());
  ::chmod(path.c_str(), 0600);
  ::chmod((folder.path() + "/corro").c_str(), 0777);
  CHECK(read_memory().empty());
  write_memory("y\n");
  ::chmod((folder.path() + "/corro").c_str(), 0700);
  CHECK(read_memory() == "x\n");
  set ? ::setenv("XDG_CACHE_HOME", before.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace corro::launcher
