#include <rapidcheck/catch.h>

#include "launcher/pipe/pipe.h"

namespace corro::launcher {

namespace {

using Words = std::vector<std::string>;

Target some_target() {
  using rc::gen::arbitrary;
  const auto text = rc::gen::string<std::string>();
  Target target;
  target.host = *rc::gen::nonEmpty(text);
  target.user = *text;
  target.port = *rc::gen::inRange(0, 65536);
  target.identities = *rc::gen::container<Words>(text);
  target.policy = *rc::gen::element(HostKeyPolicy::from_config, HostKeyPolicy::strict,
                                    HostKeyPolicy::accept_new);
  target.rsh_agent = *rc::gen::container<Words>(text);
  target.connect_timeout = std::chrono::milliseconds(*rc::gen::inRange(1, 100'000));
  target.connect_limit = std::chrono::milliseconds(*rc::gen::inRange(1, 100'000));
  target.self = *text;
  target.jump = *text;
  target.forward_to = *text;
  return target;
}

}  // namespace

TEST_CASE("what a pipe is told is what it reads") {
  rc::prop("any target", [] {
    const Target target = some_target();
    const auto read = parse_pipe_arguments(pipe_arguments(target));
    RC_ASSERT(read);
    RC_ASSERT(*read == target);
  });
}

TEST_CASE("arguments of a pipe begin with its kind and end with its host") {
  CHECK(pipe_arguments({.host = "h1"}) == Words{"--ssh-pipe", "--", "h1"});
  CHECK(pipe_arguments({.host = "--", .rsh_agent = {"ssh"}}) ==
        Words{"--rsh-pipe", "--rsh-word", "ssh", "--", "--"});
}

TEST_CASE("arguments that make no pipe are refused") {
  for (const Words& words :
       {Words{}, Words{"--guard"}, Words{"--ssh-pipe"}, Words{"--ssh-pipe", "h1"},
        Words{"--ssh-pipe", "--", ""}, Words{"--ssh-pipe", "--", "h1", "h2"},
        Words{"--ssh-pipe", "--port", "0", "--", "h1"},
        Words{"--ssh-pipe", "--port", "65536", "--", "h1"},
        Words{"--ssh-pipe", "--connect-timeout", "0", "--", "h1"},
        Words{"--ssh-pipe", "--host-key-policy", "off", "--", "h1"},
        Words{"--ssh-pipe", "--nonsense", "x", "--", "h1"}, Words{"--rsh-pipe", "--", "h1"},
        Words{"--ssh-pipe", "--rsh-word", "ssh", "--", "h1"}}) {
    INFO(words.size());
    CHECK_FALSE(parse_pipe_arguments(words));
  }
}

}  // namespace corro::launcher
