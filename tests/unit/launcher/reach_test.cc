#include "launcher/job/reach.h"

#include <catch2/catch.hpp>

namespace corro::launcher {

using namespace std::chrono_literals;

TEST_CASE("this machine's agent is this program itself") {
  CHECK(agent_command("/opt/horovodrun", {"localhost", 2}, {}, true, 10s) ==
        Command{{"/opt/horovodrun", "--guard"}});
}

TEST_CASE("another machine's agent is at the end of a pipe that knows how to reach it") {
  Reach reach;
  reach.ssh_port = 2222;
  reach.identities = {"k1", "k2"};
  reach.host_keys = HostKeyPolicy::accept_new;
  const Command command = agent_command("/opt/horovodrun", {"h1", 2, "ada", {}}, reach, false, 5s);
  REQUIRE(command.argv.front() == "/opt/horovodrun");
  const auto target = parse_pipe_arguments(std::span(command.argv).subspan(1));
  REQUIRE(target);
  CHECK(target->host == "h1");
  CHECK(target->user == "ada");
  CHECK(target->port == 2222);
  CHECK(target->identities == reach.identities);
  CHECK(target->policy == HostKeyPolicy::accept_new);
  CHECK(target->connect_timeout == 5s);
  CHECK(target->connect_limit == 4500ms);  // it is to say why before we give up

  reach.rsh_agent = {"kubectl", "exec", "-i", "{host}", "--"};
  const auto by_agent = parse_pipe_arguments(
      std::span<const std::string>(agent_command("/h", {"h1", 2}, reach, false, 30s).argv)
          .subspan(1));
  REQUIRE(by_agent);
  CHECK(by_agent->rsh_agent == reach.rsh_agent);
  CHECK(by_agent->connect_timeout == kConnectTimeout);
}

}  // namespace corro::launcher
