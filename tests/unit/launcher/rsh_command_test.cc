#include "launcher/pipe/rsh_command.h"

#include <catch2/catch.hpp>

namespace corro::launcher {

namespace {

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("the host follows the command, or stands in its place") {
  CHECK(rsh_command({.host = "h1", .rsh_agent = {"rsh", "-n"}}) == Words{"rsh", "-n", "h1", "sh"});
  CHECK(rsh_command({.host = "h1", .rsh_agent = {"x", "{host}/{host}", "--"}}) ==
        Words{"x", "h1/h1", "--", "sh"});
  CHECK(rsh_command({.host = "{host}", .rsh_agent = {"x", "a{host}b{host}"}}) ==
        Words{"x", "a{host}b{host}", "sh"});
}

TEST_CASE("a user goes with the host") {
  CHECK(rsh_command({.host = "h1", .user = "bob", .rsh_agent = {"rsh"}}) ==
        Words{"rsh", "bob@h1", "sh"});
  CHECK(rsh_command({.host = "h1", .user = "bob", .rsh_agent = {"x", "{host}"}}) ==
        Words{"x", "bob@h1", "sh"});
}

TEST_CASE("ssh is given port and identity files before all else") {
  const Target target{.host = "h1",
                      .port = 2222,
                      .identities = {"k1", "k2"},
                      .rsh_agent = {"/usr/bin/ssh", "-q", "-p", "22"}};
  CHECK(rsh_command(target) ==
        Words{"/usr/bin/ssh", "-p", "2222", "-i", "k1", "-i", "k2", "-q", "-p", "22", "h1", "sh"});
}

}  // namespace corro::launcher
