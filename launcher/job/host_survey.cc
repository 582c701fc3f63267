#include "launcher/job/host_survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "launcher/job/placing.h"
#include "launcher/network/addressing.h"
#include "launcher/plan/plan.h"

namespace corro::launcher {

namespace {

using namespace std::chrono_literals;
using doctor::Barrier;
using doctor::HostReport;

constexpr auto kToConnect = 5s;  // more than the pipe gives itself: it says best why it gave up
constexpr auto kToInspect = 8s;  // an NVIDIA driver may take three seconds, a cold Python two
constexpr auto kToAnswer = 2s;   // more than that, for the answer to come
constexpr auto kToProbe = 8s;
constexpr auto kToClose = 2s;
constexpr std::size_t kEveryoneMost = 64;  // hosts, up to which each probes all others

std::map<std::string, int> workers_by_host(const JobSpec& spec) {
  std::map<std::string, int> out;
  const auto plan = make_plan(spec.hosts, spec.np, 0);
  for (const HostSpec& host : spec.hosts) out[host.name] = plan ? 0 : host.slots;
  if (plan)
    for (const Slot& slot : plan->slots) ++out[slot.host];
  return out;
}

agent::Inspect question_for(const JobSpec& spec) {
  constexpr std::chrono::milliseconds kPatience = kToInspect;
  agent::Inspect out{spec.cwd, spec.command, {}, kPatience.count()};
  for (const auto& [name, value] : user_variables(spec.environment))
    out.env.push_back(fmt::format("{}={}", name, value));
  return out;
}

std::vector<Fleet::Host> fleet_hosts(const JobSpec& spec, const std::set<std::string>& here) {
  std::vector<Fleet::Host> out;
  for (const HostSpec& host : spec.hosts) out.push_back({host.name, here.contains(host.name)});
  return out;
}

// As NTP does: the time that the host took between question and answer is not the network's.
void note_times(std::chrono::microseconds sent, std::chrono::microseconds came,
                const agent::Inspected& answer, HostReport& to) {
  const std::chrono::microseconds asked(answer.asked_us), answered(answer.answered_us);
  const auto delay = std::max(0us, (came - sent) - (answered - asked));
  to.round_trip = delay;
  to.clock = {((asked - sent) + (answered - came)) / 2, delay / 2};
}

}  // namespace

HostSurvey::HostSurvey(const JobSpec& spec, Setup setup)
    : spec_(spec),
      setup_(std::move(setup)),
      question_(question_for(spec)),
      fleet_(fleet_hosts(spec, setup_.here),
             {.logins_at_once = spec.reach.at_once,
              .lease = {},
              .grace = {},
              .login_timeout = spec.start_timeout + kToConnect,
              .gives_up_silent_hosts = false},  // each answer has its deadline
             setup_.now, setup_.open, *this) {
  const auto workers = workers_by_host(spec);
  for (const HostSpec& host : spec.hosts) {
    HostReport& report = visits_.emplace_back(Visit{&host}).report;
    report.host = host.name;
    report.user = host.user;
    report.workers = workers.at(host.name);
    report.is_here = setup_.here.contains(host.name);
  }
}

void HostSurvey::begin() {
  fleet_.open();
  go_on();
}

HostSurvey::Visit& HostSurvey::visit(const std::string& host) {
  return *std::find_if(visits_.begin(), visits_.end(),
                       [&](const Visit& v) { return v.report.host == host; });
}

void HostSurvey::on_reached(const std::string& host, const agent::Reached& reached) {
  using std::chrono::microseconds;
  visit(host).report.arrival = doctor::Arrival{.address = reached.address,
                                               .resolve = microseconds(reached.resolve_us),
                                               .connect = microseconds(reached.connect_us),
                                               .login = microseconds(reached.login_us),
                                               .start = microseconds(reached.start_us),
                                               .staged = reached.staged,
                                               .attempts = static_cast<int>(reached.attempts),
                                               .host_key = reached.host_key};
  go_on();
}

void HostSurvey::on_ready(const std::string& host, const agent::Ready&) {
  Visit& at = visit(host);
  if (!at.report.arrival) at.report.arrival.emplace();
  agent::Survey survey{.gpus = setup_.look == Look::gpus,
                       .first_port = spec_.placement.ports.first,
                       .last_port = spec_.placement.ports.last};
  if (setup_.launcher_doors) survey.doors = opener_for(*at.host, spec_.placement, setup_.key);
  fleet_.send(host, survey);
  at.asked = setup_.wall_clock();
  if (setup_.look == Look::all) fleet_.send(host, question_);
  at.deadline = setup_.now() + kToInspect + kToAnswer;
  go_on();
}

void HostSurvey::on_surveyed(const std::string& host, const agent::Facts& facts) {
  Visit& at = visit(host);
  at.doors = facts.doors;
  if (setup_.look == Look::gpus) at.report.seen.emplace().gpus = facts.gpus;
  go_on();
}

void HostSurvey::on_message(const std::string& host, const agent::Up& up, std::uint64_t) {
  const auto* inspected = std::get_if<agent::Inspected>(&up);
  if (!inspected) return;
  Visit& at = visit(host);
  at.report.seen = inspected->seen;
  note_times(at.asked, setup_.wall_clock(), *inspected, at.report);
  go_on();
}

void HostSurvey::on_probed(const std::string& host, const agent::Knocked& probed) {
  for (const Opening& opening : probed.openings) {
    const std::vector<Door>& doors = doors_of(opening.host);
    const std::string to = opening.host == Addressing::kLauncher ? "the launcher" : opening.host;
    for (std::uint32_t i = 0; i < doors.size(); ++i) {
      const bool open =
          std::find(opening.doors.begin(), opening.doors.end(), i) != opening.doors.end();
      routes_.push_back({host, to, doors[i].ip, open, open ? "" : opening.trouble});
    }
  }
  go_on();
}

void HostSurvey::on_not_started(const std::string& host, const Error& why) {
  fail(visit(host), BarrierKind::machine, why.text());
}

void HostSurvey::on_unreachable(const std::string& host, const agent::Unreached& unreached) {
  fail(visit(host), unreached.kind, unreached.why, unreached.fix);
}

// An agent that gives up by itself ends its session, too.
void HostSurvey::on_given_up(const std::string& host, Reason reason, const std::string& why) {
  if (reason == Reason::version) fail(visit(host), BarrierKind::version, why);
}

void HostSurvey::on_gone(const std::string& host, const std::string& why) {
  Visit& at = visit(host);
  fail(at, at.report.arrival ? BarrierKind::lost : BarrierKind::machine, why);
}

void HostSurvey::fail(Visit& at, BarrierKind kind, const std::string& why, const std::string& fix) {
  at.deadline.reset();
  if (!at.report.barrier && step_ < Step::closing) at.report.barrier = Barrier{kind, why, fix};
  fleet_.terminate(at.report.host);
  go_on();
}

// From one step to the next, when all hosts have come so far or have failed.
void HostSurvey::go_on() {
  const auto all = [&](auto is) { return std::all_of(visits_.begin(), visits_.end(), is); };
  tell();
  for (Visit& at : visits_)
    if (at.is_done()) at.deadline.reset();
  if (step_ == Step::asking && all([](const Visit& v) { return v.is_done(); })) probe();
  if (step_ == Step::probing && all([this](const Visit& v) { return has_answered(v); })) close();
  if (step_ >= Step::closing && fleet_.all_in({HostPhase::gone})) step_ = Step::finished;
}

bool HostSurvey::has_answered(const Visit& at) const {
  const HostPhase phase = fleet_.phase(at.report.host);
  return phase == HostPhase::probed || phase == HostPhase::gone || !at.is_well() ||
         !setup_.launcher_doors;
}

void HostSurvey::tell() const {
  ConsultProgress progress{static_cast<int>(visits_.size())};
  for (const Visit& at : visits_) {
    if (at.report.arrival) ++progress.reached;
    if (at.is_done()) ++progress.done;
  }
  if (setup_.watch) setup_.watch(progress);
}

void HostSurvey::probe() {
  step_ = Step::probing;
  step_deadline_ = setup_.now() + kToProbe;
  if (!setup_.launcher_doors) return;
  for (const Visit& at : visits_)
    if (at.is_well()) fleet_.send(at.report.host, agent::Knock{doorways_for(at)});
}

// Each host probes all others; if there are many, its neighbours and the first, as in a job.
std::vector<Doorway> HostSurvey::doorways_for(const Visit& at) const {
  std::vector<std::string> well;
  for (const Visit& other : visits_)
    if (other.is_well()) well.push_back(other.report.host);
  Addressing few(well);
  few.has_doors(Addressing::kLauncher, *setup_.launcher_doors);
  std::vector<Doorway> everyone = {{Addressing::kLauncher, *setup_.launcher_doors}};
  for (const Visit& other : visits_)
    if (other.is_well()) {
      few.has_doors(other.report.host, *other.doors);
      if (&other != &at) everyone.push_back({other.report.host, *other.doors});
    }
  return well.size() <= kEveryoneMost ? everyone : few.to_knock_at(at.report.host);
}

const std::vector<Door>& HostSurvey::doors_of(const std::string& host) const {
  static const std::vector<Door> kNone;
  if (host == Addressing::kLauncher) return setup_.launcher_doors ? *setup_.launcher_doors : kNone;
  for (const Visit& at : visits_)
    if (at.report.host == host && at.doors) return *at.doors;
  return kNone;
}

void HostSurvey::close() {
  step_ = Step::closing;
  step_deadline_ = setup_.now() + kToClose;
  for (const Visit& at : visits_) {
    const HostPhase phase = fleet_.phase(at.report.host);
    if (phase != HostPhase::closing && phase != HostPhase::gone) fleet_.close(at.report.host);
  }
}

void HostSurvey::on_step_deadline() {
  step_deadline_ = TimePoint::max();
  switch (step_) {
    case Step::probing:
      for (Visit& at : visits_)
        if (!has_answered(at))
          fail(at, BarrierKind::silent, "it did not say which hosts it reaches");
      break;
    case Step::closing:
      step_ = Step::ending;
      step_deadline_ = setup_.now() + kToClose;
      for (const Visit& at : visits_) fleet_.terminate(at.report.host);
      break;
    case Step::ending:
      step_ = Step::finished;
      break;
    case Step::asking:
    case Step::finished:
      break;
  }
}

void HostSurvey::tick() {
  fleet_.tick();
  for (Visit& at : visits_)
    if (at.deadline && setup_.now() >= *at.deadline)
      fail(at, BarrierKind::silent,
           fmt::format("nothing was heard of it for {:.0f} s",
                       std::chrono::duration<double>(kToInspect + kToAnswer).count()));
  if (setup_.now() >= step_deadline_) on_step_deadline();
}

TimePoint HostSurvey::wake() const {
  TimePoint wake = std::min(fleet_.wake(), step_deadline_);
  for (const Visit& at : visits_) wake = std::min(wake, at.deadline.value_or(wake));
  return wake;
}

doctor::Consultation HostSurvey::take_result() {
  doctor::Consultation out;
  for (Visit& at : visits_) out.hosts.push_back(std::move(at.report));
  out.routes = std::move(routes_);
  return out;
}

}  // namespace corro::launcher
