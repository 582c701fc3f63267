#include "launcher/job/job.h"

#include <fmt/format.h>

#include "base/loop.h"
#include "base/process.h"
#include "launcher/job/driver.h"
#include "launcher/job/here.h"
#include "launcher/plan/plan.h"

namespace corro::launcher {

namespace {

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

Result<Outcome> run_job(const JobSpec& spec, const Wording& wording) {
  auto plan = make_plan(spec.hosts, spec.np, 0);
  if (!plan) return plan.error();
  if (auto fit = check_interfaces_here(spec.placement, *plan); !fit) return fit.error();
  // From here ranks are fixed.

  want_many_descriptors();
  auto signals = std::make_unique<Signals>();
  Loop loop;
  auto desk = OutputDesk::open(spec.output, speakers_of(*plan));
  if (!desk) return desk.error();
  Policy policy;
  policy.grace = spec.grace;
  policy.start_timeout = spec.start_timeout;
  Outcome outcome;
  {
    // With the driver go our signals: when no process is left to be ended, one may end us, who may
    // be waiting for a reader of the last output.
    Driver driver(loop, std::move(signals), **desk, spec, *plan, policy, wording);
    // From here processes run, and this returns when none does any more.
    outcome = driver.run();
  }
  (*desk)->settle();
  outcome.not_shown = (*desk)->not_shown();
  outcome.inside_line = (*desk)->inside_line();
  return outcome;
}

}  // namespace corro::launcher
