#include "launcher/pipe/pipe.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "launcher/agent/protocol.h"
#include "launcher/pipe/agent_start.h"
#include "launcher/pipe/copy.h"
#include "launcher/pipe/proxy.h"
#include "launcher/pipe/way.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

constexpr int kExitUnreached = 125;  // as for our other failures
constexpr auto kMoment = 2s;         // for what should take none

void tell_launcher(const agent::Up& message) {
  (void)write_all(STDOUT_FILENO, encode_frame(message, 0), Deadline::in(kMoment));
}

int give_up(const agent::Unreached& why) {
  tell_launcher(why);
  return kExitUnreached;
}

// The stream of frames has ended well; how the guard did is passed on.
int code_of(Way& way) {
  return way.wire->exit_code(Deadline::in(kMoment)).value_or(kExitUnreached);
}

int carry_agent(const Target& target, Way& way) {
  const TimePoint began = Clock::now();
  auto agent = start_agent(way, target.self);
  if (!agent) return give_up(agent.error());
  way.reached.start_us = microseconds_since(began);
  way.reached.staged = agent->staged;
  tell_launcher(way.reached);

  const auto broken = copy_both_ways(*way.wire, std::move(agent->first), Shape::frames);
  if (!broken) return code_of(way);
  return give_up({agent::Barrier::lost,
                  fmt::format("{}: the connection was lost: {}", way.name, broken->text()),
                  way.by_hand + " true"});
}

// For another pipe, whose connection this is a part of: it reads our stderr and our exit code.
int carry_bytes(Way& way) {
  const auto broken = copy_both_ways(*way.wire, {}, Shape::bytes);
  return broken ? kExitUnreached : 0;
}

}  // namespace

int run_pipe(const Target& target) {
  ::signal(SIGPIPE, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) (void)set_nonblocking(fd);
  auto way = target.rsh_agent.empty() ? ssh_way(target) : rsh_way(target);
  if (way) return target.forward_to.empty() ? carry_agent(target, *way) : carry_bytes(*way);
  if (target.forward_to.empty()) return give_up(way.error());
  return tell_pipe(way.error());
}

}  // namespace corro::launcher
