#include "launcher/output/files.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/folder.h"

namespace corro::launcher {

namespace fs = std::filesystem;

namespace {

using test::Folder;

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("folders have as many digits as the greatest rank") {
  CHECK(folder_of(0, 1) == "rank.0");
  CHECK(folder_of(9, 10) == "rank.9");
  CHECK(folder_of(9, 11) == "rank.09");
  CHECK(folder_of(10, 11) == "rank.10");
  CHECK(folder_of(7, 1000) == "rank.007");
  CHECK(folder_of(7, 1001) == "rank.0007");
}

TEST_CASE("each worker's streams have files of their own, which begin empty") {
  const Folder folder;
  const auto path = folder.path() + "/deep/er";
  for (int time = 0; time < 2; ++time) {
    auto files = OutputFiles::open(path, 2);
    REQUIRE(files);
    REQUIRE(::write(files->outlet(1, Stream::err).fd, "x", 1) == 1);
  }
  CHECK(content_of(path + "/rank.0/stdout").empty());
  CHECK(content_of(path + "/rank.1/stderr") == "x");
}

TEST_CASE("a directory that cannot be made is named") {
  const Folder folder;
  std::ofstream(folder.path() + "/file");
  const auto files = OutputFiles::open(folder.path() + "/file/logs", 1);
  REQUIRE_FALSE(files);
  CHECK(files.error().text() ==
        "making the directory " + folder.path() + "/file/logs/rank.0: Not a directory");
}

}  // namespace corro::launcher
