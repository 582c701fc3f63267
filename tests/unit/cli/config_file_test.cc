#include "cli/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <set>

namespace corro::cli {

namespace {

std::string reading_of(std::string_view content) {
  const auto file = read_config({"c.yaml", content, true});
  if (!file) return "error: " + file.error().text();
  std::vector<std::string> out;
  for (const Given& given : file->options)
    out.push_back(given.values.empty()
                      ? std::string(given.option->name())
                      : fmt::format("{}={}", given.option->name(), fmt::join(given.values, "+")));
  for (const std::string& note : file->notes) out.push_back("note: " + note);
  return fmt::format("{}", fmt::join(out, "; "));
}

}  // namespace

TEST_CASE("a configuration file gives options") {
  const auto [content, reading] = GENERATE(table<std::string, std::string>({
      {"", ""},
      {"# nothing\n", ""},
      {"params:\n", ""},
      {"params:\n  fusion_threshold_mb: 32\n  cycle_time_ms: 2.5\n",
       "--fusion-threshold-mb=32; --cycle-time-ms=2.5"},
      {"params: {cache_capacity: 7}", "--cache-capacity=7"},
      {"params:\n  hierarchical_allreduce: true\n  torus_allreduce: off\n",
       "--hierarchical-allreduce; --no-torus-allreduce"},
      {"autotune:\n  enabled: True\n  log_file: a b.csv\n",
       "--autotune; --autotune-log-file=a b.csv"},
      {"autotune:\n  enabled: no\n", "--no-autotune"},
      {"stall_check:\n  enabled: false\n  warning_time_seconds: 9\n",
       "--no-stall-check; --stall-check-warning-time-seconds=9"},
      {"stall_check: {enabled: true}", "--stall-check"},
      {"logging:\n  level: INFO\n  with_timestamp: false\n",
       "--log-level=INFO; --log-without-timestamp"},
      {"logging: {level: info}", "--log-level=INFO"},
      {"params: {fusion_threshold_mb: 32.0, cache_capacity: 0x20}",
       "--fusion-threshold-mb=32; --cache-capacity=32"},
      {"library_options:\n  thread_affinity: [0, 2]\n", "--thread-affinity=0,2"},
      {"---\ncontroller: mpi\n", "--mpi"},
      {"controller: mpi", "--mpi"},
      {"controller: gloo", "--gloo"},
      {"timeline:\n  filename: ~\n", ""},
      {"\xef\xbb\xbfparams:\r\n  cache_capacity: 7\r\n", "--cache-capacity=7"},
  }));
  CAPTURE(content);
  CHECK(reading_of(content) == reading);
}

TEST_CASE("a key that nobody knows is reported with its line and what may be meant") {
  CHECK(
      reading_of("logging:\n  hide_timestamp: true\n  levle: INFO\n") ==
      "note: c.yaml:2: nobody knows the key 'logging.hide_timestamp'; 'logging.with_timestamp' may "
      "be meant; note: c.yaml:3: nobody knows the key 'logging.levle'; 'logging.level' may be "
      "meant");
  CHECK(reading_of("parms:\n  cycle_time_ms: 1\n") ==
        "note: c.yaml:1: nobody knows the key 'parms'; 'params' may be meant");
}

TEST_CASE("a file for something else does not flood the screen") {
  std::string content;
  for (int i = 0; i < 1000; ++i) content += fmt::format("key{}: 1\n", i);
  const auto file = read_config({"c.yaml", content, true});
  REQUIRE(file);
  REQUIRE(file->notes.size() == 21);
  CHECK(file->notes.back() == "c.yaml: and so on");
}

TEST_CASE("what is wrong is shown where it is") {
  const auto [content, text] = GENERATE(table<std::string, std::string>({
      {"params:\n  cache_capacity: many\n",
       "c.yaml:2:19: argument --cache-capacity: invalid int value: 'many'\n"
       "    cache_capacity: many\n"
       "                    ^~~~"},
      {"params:\n  cycle_time_ms: -1\n",
       "c.yaml:2:18: argument --cycle-time-ms: must be from 0 to 2147483647, not -1\n"
       "    cycle_time_ms: -1\n"
       "                   ^~"},
      {"params:\n  hierarchical_allreduce: maybe\n",
       "c.yaml:2:27: 'params.hierarchical_allreduce' is true or false\n"
       "    hierarchical_allreduce: maybe\n"
       "                            ^~~~~"},
      {"controller: smoke",
       "c.yaml:1:13: No such controller supported: smoke\n"
       "  controller: smoke\n"
       "              ^~~~~"},
      {"params: 3",
       "c.yaml:1:9: 'params' has keys below it, not a value\n"
       "  params: 3\n"
       "          ^"},
      {"params:\n  cache_capacity: [1]\n",
       "c.yaml:2:19: 'params.cache_capacity' takes one value\n"
       "    cache_capacity: [1]\n"
       "                    ^"},
      {"library_options: {thread_affinity: [x]}",
       "c.yaml:1:36: argument --thread-affinity: expected cores as 0,2,4, not 'x'\n"
       "  library_options: {thread_affinity: [x]}\n"
       "                                     ^"},
      {"- a\n", "c.yaml:1:1: expected keys and values\n  - a\n  ^"},
      {"[a]: 1\n", "c.yaml:1:1: a key must be a plain word\n  [a]: 1\n  ^"},
  }));
  CAPTURE(content);
  CHECK(reading_of(content) == "error: " + text);
}

TEST_CASE("what the command line says otherwise is not looked at") {
  const std::vector<Given> said = {{&option("--gloo"), {}}};
  const auto file = read_config({"c.yaml", "controller: smoke\n", true}, said);
  REQUIRE(file);
  CHECK(file->options.empty());
}

TEST_CASE("a second document is not ignored") {
  CHECK(reading_of("controller: mpi\n---\ncontroller: gloo\n")
            .starts_with("error: c.yaml:2:1: a second document begins here"));
}

TEST_CASE("what is no YAML is an error with its place") {
  CHECK(reading_of("params:\n  a: b: c\n").starts_with("error: c.yaml:2:"));
  CHECK(reading_of("{").starts_with("error: c.yaml:"));
  CHECK(reading_of(std::string(kConfigLimit + 1, ' ')) == "error: c.yaml is longer than 64 KiB");
}

TEST_CASE("every key of the table can be read") {
  std::set<std::string_view> keys;
  for (const Option& option : options())
    if (!option.key.empty()) keys.insert(option.key);
  CHECK(keys.size() == 24);
  for (const auto key : keys) {
    const auto dot = key.find('.');
    if (dot == key.npos) continue;
    const auto reading =
        reading_of(fmt::format("{}:\n  {}: {}\n", key.substr(0, dot), key.substr(dot + 1),
                               key == "logging.level" ? "INFO" : "1"));
    CAPTURE(key, reading);
    CHECK((reading.starts_with("--") || reading.find("is true or false") != reading.npos));
  }
}

}  // namespace corro::cli
