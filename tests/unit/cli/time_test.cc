// What a user types or hands over is understood, or refused, within 100 ms, whatever it is.  The
// fuzz targets look for slow inputs under sanitizers, which cost a factor of ten and more; these
// are the largest and most awkward ones without them.  Where these tests run under one, they have
// as much more time.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <ctime>

#include "cli/arguments.h"
#include "cli/config_file.h"
#include "cli/values.h"
#include "launcher/hosts/hosts.h"

namespace corro::cli {

namespace {

constexpr std::size_t kLong = 65536;
#ifdef __SANITIZE_ADDRESS__
constexpr double kLimit_ms = 10000;  // unoptimised, too
#else
constexpr double kLimit_ms = 100;
#endif

template <class Work>
double milliseconds_for(Work work) {
  const auto now = [] {
    timespec t;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  [[maybe_unused]] const auto result = work();
  return now() - start;
}

std::string repeated(std::string_view piece) {
  std::string out;
  while (out.size() + piece.size() <= kLong) out += piece;
  return out;
}

std::string numbered(std::string_view format) {
  std::string out;
  for (int i = 0; out.size() < kLong - 64; ++i) out += fmt::format(fmt::runtime(format), i);
  return out;
}

}  // namespace

TEST_CASE("many arguments are read in time") {
  std::vector<std::string> words;
  for (int i = 0; i < 10000; ++i) {
    words.push_back("-x");
    words.push_back(fmt::format("NAME_{}=value", i));
  }
  CHECK(milliseconds_for([&] { return read_arguments(words); }) < kLimit_ms);
  const auto read = read_arguments(words);
  CHECK(milliseconds_for([&] { return gather(read->options); }) < kLimit_ms);
  CHECK(milliseconds_for([&] { return read_arguments(std::vector<std::string>(10000, "--wat")); }) <
        kLimit_ms);
  CHECK(milliseconds_for([&] { return read_arguments(std::vector<std::string>{repeated("-h")}); }) <
        kLimit_ms);
}

TEST_CASE("long lists of hosts are read in time") {
  for (const std::string& text :
       {std::string("n[0-131071]"), std::string("r[0-127]n[0-1023]:8"), numbered("n{}:2,") + "z",
        repeated("a,") + "a", repeated("a[1-9],") + "a", repeated("["), repeated("a@"),
        repeated("n[0-9]")}) {
    CAPTURE(text.substr(0, 40));
    CHECK(milliseconds_for([&] {
            return launcher::parse_hosts({"-H", text}, nullptr);
          }) < kLimit_ms);
    CHECK(milliseconds_for([&] { return launcher::parse_node_list({"list", text}); }) < kLimit_ms);
    CHECK(milliseconds_for([&] { return launcher::parse_host_file({"file", text}); }) < kLimit_ms);
  }
}

TEST_CASE("long host files are read in time") {
  for (const std::string& text :
       {numbered("node{} slots=4 max_slots=8\n"), repeated("a\n"), repeated("a slots=1\n"),
        repeated("\n"), repeated("a x=1 "), repeated("# a\r\n") + "a", repeated("n[1-9]:4\n")}) {
    CAPTURE(text.substr(0, 40));
    CHECK(milliseconds_for([&] { return launcher::parse_host_file({"file", text}); }) < kLimit_ms);
  }
}

TEST_CASE("long configuration files are read in time") {
  for (const std::string& text :
       {"params:\n" + numbered("  key_{}: 1\n"), numbered("key_{}: 1\n"), repeated("["),
        repeated("{a: "), repeated("- "), repeated("&a "),
        "a: &a [1]\nb: [" + repeated("*a, ") + "]", repeated("? "), repeated("a:\n ")}) {
    CAPTURE(text.substr(0, 40));
    CHECK(milliseconds_for([&] { return read_config({"config.yaml", text}); }) < kLimit_ms);
  }
}

}  // namespace corro::cli
