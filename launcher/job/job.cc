#include "launcher/job/job.h"

#include <fmt/format.h>

#include "base/loop.h"
#include "launcher/job/driver.h"
#include "launcher/plan/plan.h"
#include "launcher/plan/recipe.h"
#include "rendezvous/store_server.h"

namespace kolo {

namespace {

Result<Unit> check_reach(const std::vector<HostSpec>& hosts) {
  const auto names = names_of_this_machine();
  for (const HostSpec& host : hosts)
    if (!is_this_machine(host.name, names))
      return Error(Errc::unsupported,
                   fmt::format("host {} is not this machine, and other machines cannot be reached "
                               "yet\n  Use localhost, 127.0.0.1 or this machine's own name, as in "
                               "-H localhost:4.",
                               host.name));
  return Unit{};
}

std::vector<Speaker> speakers_of(const Plan& plan) {
  std::vector<Speaker> speakers;
  for (const Slot& slot : plan.slots) speakers.push_back({slot.rank, slot.local_rank, slot.host});
  return speakers;
}

}  // namespace

bool is_detail(const News& news) {
  return !std::holds_alternative<news::Warning>(news) &&
         !std::holds_alternative<news::Placed>(news);
}

Result<Outcome> run_job(const JobSpec& spec, const Tell& tell) {
  if (auto reached = check_reach(spec.hosts); !reached) return reached.error();
  auto plan = make_plan(spec.hosts, spec.np, 0);
  if (!plan) return plan.error();
  // From here ranks are fixed.

  auto signals = std::make_unique<Signals>();
  Loop loop;
  const Key key = Key::random();
  auto store = StoreServer::start(loop, {"127.0.0.1", 0}, key);
  if (!store) return std::move(store.error()).during("starting the job's store");
  if (spec.verbose) tell(news::StoreListens{(*store)->address().text()});
  // From here workers may meet.
  auto desk = OutputDesk::open(spec.output, speakers_of(*plan));
  if (!desk) return desk.error();
  const Setting setting{spec.command, spec.environment, spec.cwd, (*store)->address(), {}, key};
  Policy policy;
  policy.grace = spec.grace;
  policy.start_timeout = spec.start_timeout;
  Outcome outcome;
  {
    // With the driver go our signals: when no process is left to be ended, one may end us, who may
    // be waiting for a reader of the last output.
    Driver driver(loop, std::move(signals), **store, **desk, spec, setting, *plan, policy, tell);
    if (auto opened = driver.open_sessions(); !opened) return opened.error();
    // From here processes run, and run() returns when none does any more.
    outcome = driver.run();
  }
  (*desk)->settle();
  outcome.not_shown = (*desk)->not_shown();
  return outcome;
}

}  // namespace kolo
