#include <catch2/catch.hpp>
#include <map>

#include "runtime/wiring/environment.h"

using namespace corro;
using namespace corro::runtime;
using namespace std::chrono_literals;

namespace {

using Variables = std::map<std::string, std::string>;

const std::string kKey(64, 'a');

Variables launched() {
  return {{"HOROVOD_RANK", "3"},       {"HOROVOD_SIZE", "8"},        {"HOROVOD_LOCAL_RANK", "1"},
          {"HOROVOD_LOCAL_SIZE", "2"}, {"HOROVOD_CROSS_RANK", "1"},  {"HOROVOD_CROSS_SIZE", "4"},
          {"HOROVOD_HOSTNAME", "b"},   {"CORRO_STORE", "[::1]:80"},  {"CORRO_JOB_KEY", kKey},
          {"CORRO_GENERATION", "6"},   {"CORRO_ADDRESS", "10.0.0.2"}};
}

Result<JobEnvironment> read(const Variables& variables) {
  return read_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables with(const std::string& name, const std::string& value) {
  Variables variables = launched();
  variables[name] = value;
  return variables;
}

}  // namespace

TEST_CASE("a process that nobody launched is alone") {
  const auto environment = read({{"PATH", "/bin"}});
  REQUIRE(environment);
  CHECK(environment->place == Place{});
  CHECK_FALSE(environment->meeting);
  CHECK(environment->operation_timeout == 300s);
  CHECK(environment->start_timeout == 30s);
}

TEST_CASE("a launched worker learns its place and where to meet the others") {
  const auto environment = read(launched());
  REQUIRE(environment);
  CHECK(environment->place == Place{3, 8, 1, 2, 1, 4, "b"});
  CHECK(environment->meeting == Meeting{{"::1", 80}, *Key::from_hex(kKey), 6, "10.0.0.2"});
}

TEST_CASE("an environment that is set in part names what is missing") {
  for (const auto& [name, value] : launched()) {
    Variables variables = launched();
    variables.erase(name);
    const auto environment = read(variables);
    REQUIRE_FALSE(environment);
    CHECK(environment.error().code() == Errc::invalid_input);
    CHECK(environment.error().text() == name + " is not set, though others of this job are");
  }
}

TEST_CASE("a value that cannot be is refused by its variable's name") {
  const auto [name, value] = GENERATE(table<std::string, std::string>({
      {"HOROVOD_RANK", "8"},
      {"HOROVOD_RANK", "-1"},
      {"HOROVOD_SIZE", "0"},
      {"HOROVOD_SIZE", "4x"},
      {"HOROVOD_SIZE", "99999999999999999999"},
      {"HOROVOD_LOCAL_RANK", "2"},
      {"HOROVOD_CROSS_SIZE", "9"},
      {"HOROVOD_HOSTNAME", ""},
      {"CORRO_STORE", "localhost:80"},
      {"CORRO_JOB_KEY", "abc"},
      {"CORRO_GENERATION", "-1"},
      {"CORRO_ADDRESS", "localhost"},
      {"CORRO_TIMEOUT_SECONDS", "soon"},
      {"HOROVOD_START_TIMEOUT", "-3"},
  }));
  const auto environment = read(with(name, value));
  REQUIRE_FALSE(environment);
  CHECK(environment.error().code() == Errc::invalid_input);
  CHECK_THAT(environment.error().text(), Catch::Matchers::StartsWith(name + " "));
}

TEST_CASE("a worker may be reached at an address of either family") {
  CHECK(read(with("CORRO_ADDRESS", "fe80::1"))->meeting->ip == "fe80::1");
  CHECK(read(with("CORRO_PORT_RANGE", "5-9"))->meeting->ports == PortRange{5, 9});
  CHECK_FALSE(read(with("CORRO_PORT_RANGE", "9-5")));
}

TEST_CASE("times can be set, and zero means the default") {
  CHECK(read(with("CORRO_TIMEOUT_SECONDS", "7"))->operation_timeout == 7s);
  CHECK(read(with("HOROVOD_START_TIMEOUT", "90"))->start_timeout == 90s);
  CHECK(read(with("HOROVOD_START_TIMEOUT", "0"))->start_timeout == 30s);
  CHECK(read({{"CORRO_TIMEOUT_SECONDS", "7"}})->operation_timeout == 7s);
}

TEST_CASE("shared memory can be switched off, and algorithms chosen") {
  CHECK(read(launched())->machine == "");
  CHECK(read(with("CORRO_SHARED_MEMORY", "0"))->machine == "rank 3");
  CHECK(read(with("CORRO_ALGORITHMS", "allreduce=ring"))->algorithms ==
        *Overrides::parse("allreduce=ring"));
  CHECK_FALSE(read(with("CORRO_ALGORITHMS", "allreduce=best")));
}

TEST_CASE("a place for the status is passed on as it is") {
  CHECK(read({})->status == "");
  CHECK(read(with("CORRO_STATUS", "96:0"))->status == "96:0");
  CHECK(read(with("CORRO_STATUS", "nonsense"))->status == "nonsense");
}

TEST_CASE("the key is never part of an error") {
  const auto environment = read(with("CORRO_JOB_KEY", "secret"));
  CHECK(environment.error().text().find("secret") == std::string::npos);
}
