#include "launcher/job/driver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/log.h"
#include "launcher/job/consult.h"
#include "launcher/job/here.h"
#include "launcher/output/files.h"
#include "launcher/session/process_session.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

constexpr auto kQuick = 300ms;

int exit_code_for(agent::Barrier barrier) {
  switch (barrier) {
    case agent::Barrier::name:
      return kExitName;
    case agent::Barrier::unreachable:
      return kExitUnreached;
    case agent::Barrier::host_key_unknown:
    case agent::Barrier::host_key_changed:
      return kExitHostKey;
    case agent::Barrier::refused:
    case agent::Barrier::unsupported:
      return kExitLogin;
    case agent::Barrier::shell:
    case agent::Barrier::staging:
    case agent::Barrier::machine:
      return kExitMachine;
    case agent::Barrier::lost:
    case agent::Barrier::version:
    case agent::Barrier::silent:
      break;
  }
  return kExitHostLost;
}

std::vector<int> readers_of(const JobSpec& spec) {
  std::vector<int> ranks;
  for (int rank = 0; rank < spec.np; ++rank)
    if (spec.stdin_to.reaches(rank)) ranks.push_back(rank);
  return ranks;
}

std::vector<Fleet::Host> fleet_hosts(const Plan& plan, const std::set<std::string>& here) {
  std::vector<Fleet::Host> out;
  for (const std::string& host : plan.hosts()) out.push_back({host, here.contains(host)});
  return out;
}

}  // namespace

Driver::Driver(Loop& loop, std::unique_ptr<Signals> signals, OutputDesk& desk, const JobSpec& spec,
               Plan plan, Policy policy, Wording wording)
    : loop_(loop),
      desk_(desk),
      spec_(spec),
      plan_(std::move(plan)),
      policy_(policy),
      wording_(std::move(wording)),
      supervisor_(plan_, policy_, loop.now()),
      here_(hosts_here(plan_)),
      fleet_(
          fleet_hosts(plan_, here_),
          {.logins_at_once = spec.reach.at_once,
           .lease = {},
           .grace = policy.grace,
           .login_timeout = {}},
          [&loop] { return loop.now(); },
          [this](const std::string& host, Session::Events events) {
            return open_session(host, std::move(events));
          },
          *this),
      wayfinding_(loop, spec, key_, plan_.hosts()),
      feeder_(loop, STDIN_FILENO, readers_of(spec),
              [this](int rank, ByteView bytes, bool ends) {
                send_to(rank, agent::Input{static_cast<std::uint32_t>(rank),
                                           Bytes(bytes.begin(), bytes.end()), ends});
              }),
      signals_(std::move(signals)),
      began_(loop.now()) {
  progress_.hosts = static_cast<int>(plan_.hosts().size());
  progress_.workers = plan_.size();
  rise_.before = began_ - spec_.asked;
  signal_watch_ = loop_.watch(signals_->fd(), Ready::read, [this] {
    if (const auto signo = signals_->next()) on_signal(*signo);
  });
}

const HostSpec& Driver::named(const std::string& host) const {
  return *std::find_if(spec_.hosts.begin(), spec_.hosts.end(),
                       [&](const HostSpec& h) { return h.name == host; });
}

Result<std::unique_ptr<Session>> Driver::open_session(const std::string& host,
                                                      Session::Events events) {
  return ProcessSession::start(loop_, spawner_,
                               agent_command(spec_.self, named(host), spec_.reach,
                                             here_.contains(host), policy_.start_timeout),
                               std::move(events));
}

Outcome Driver::run() {
  advance(StartEvent::open);
  set_alarm();
  progress_timer_ = loop_.at(began_ + kQuick, [this] {
    slow_ = true;
    note_progress();
  });
  loop_.run();
  if (store_) store_->on_arrival({});
  desk_.show_status("");
  tell(rise_);
  // Those who were lost with their host have left words too.
  for (const Slot& slot : plan_.slots) desk_.finish(slot.rank);
  Outcome outcome = supervisor_.outcome();
  for (auto& [rank, doing] : doings_) outcome.workers[rank].doing = std::move(doing);
  return outcome;
}

// Called when something has changed.
void Driver::note_progress() {
  const auto note = [this](std::optional<Duration>& when, int now, int all) {
    if (!when && now >= all) when = loop_.now() - began_;
  };
  note(rise_.hosts_ready, progress_.hosts_ready, progress_.hosts);
  note(rise_.workers_started, progress_.started, progress_.workers);
  note(rise_.workers_met, progress_.met, progress_.workers);
  const auto text = progress_.text();
  if (slow_) desk_.show_status(text.empty() ? "" : "horovodrun: " + text);
}

void Driver::hear(const Event& event) {
  for (const Order& order : supervisor_.on(event, loop_.now()))
    std::visit([this](const auto& o) { carry_out(o); }, order);
  for (const std::string& text : supervisor_.dropped()) log(LogLevel::debug, text);
  set_alarm();
}

void Driver::set_alarm() {
  const auto wake = std::min(fleet_.wake(), supervisor_.wake().value_or(TimePoint::max()));
  alarm_ = loop_.at(wake, [this] {
    fleet_.tick();
    hear(heard::Tick{});
  });
}

void Driver::on_signal(int signo) {
  switch (signo) {
    case SIGTSTP:
      return stop_and_go_on();
    case SIGUSR1:
    case SIGUSR2:
    case SIGWINCH:
      return hear(heard::Spoken{signo});
    default:
      return hear(heard::Interrupted{signo});
  }
}

// Ctrl-Z, until somebody says fg.  The agents have stopped the workers, and nobody counts the time.
void Driver::stop_and_go_on() {
  fleet_.hold();
  const TimePoint stopped = loop_.now();
  ::raise(SIGSTOP);
  fleet_.resume();
  hear(heard::Held{loop_.now() - stopped});
}

void Driver::on_message(const std::string& host, const agent::Up& up, std::uint64_t seq) {
  if (const auto* output = std::get_if<agent::Output>(&up)) return on_output(host, *output, seq);
  std::visit(
      [&]<class M>(const M& message) {
        if constexpr (requires { on_host(host, message); }) on_host(host, message);
      },
      up);
}

void Driver::on_ready(const std::string& host, const agent::Ready& ready) {
  tell(news::HostReady{host, ready.pid});
  const Placement& wish = spec_.placement;
  fleet_.send(host, agent::Survey{wish.gpu_pinning != GpuPinning::none,
                                  wish.bind_to != BindTo::none || wish.report, wish.ports.first,
                                  wish.ports.last, wayfinding_.opener_for(named(host))});
}

void Driver::on_surveyed(const std::string& host, const agent::Facts& facts) {
  facts_[host] = facts;
  wayfinding_.has_doors(host, facts.doors);
  ++progress_.hosts_ready;
  note_progress();
  hear(heard::HostReady{host});
  if (fleet_.all_in({HostPhase::surveyed})) advance(StartEvent::all_surveyed);
}

void Driver::on_probed(const std::string& host, const agent::Knocked& knocked) {
  switch (wayfinding_.knocked(host, knocked.openings)) {
    case Wayfinding::Step::waiting:
      return;
    case Wayfinding::Step::knock_again:
      return advance(StartEvent::routes_refuted);
    case Wayfinding::Step::done:
      return advance(StartEvent::routes_known);
  }
}

const Driver::StartStep Driver::kStart[] = {
    {StartPhase::planned, StartEvent::open, StartPhase::surveying, &Driver::open_hosts},
    {StartPhase::surveying, StartEvent::all_surveyed, StartPhase::probing, &Driver::probe_routes},
    {StartPhase::probing, StartEvent::routes_refuted, StartPhase::probing, &Driver::probe_again},
    {StartPhase::probing, StartEvent::routes_known, StartPhase::arranging, &Driver::arrange},
    {StartPhase::arranging, StartEvent::arranged, StartPhase::running, &Driver::begin},
};

void Driver::advance(StartEvent event) {
  for (const StartStep& step : kStart)
    if (step.from == start_ && step.on == event) {
      start_ = step.to;
      return (this->*step.run)();
    }
  log(LogLevel::debug,
      fmt::format("start: no edge for {} in phase {}", name_of(event), name_of(start_)));
}

void Driver::open_hosts() {
  if (here_.size() < fleet_.size()) wayfinding_.open_doors();
  fleet_.open();
}

void Driver::probe_routes() {
  if (wayfinding_.begin())
    probe_again();
  else
    advance(StartEvent::routes_known);
}

void Driver::probe_again() {
  for (const std::string& host : plan_.hosts()) fleet_.send(host, wayfinding_.knock_for(host));
}

void Driver::arrange() {
  const auto routes = find_routes();
  if (!routes) return hear(routes.error());
  if (const auto opened = open_store(routes->launcher); !opened) return hear(opened.error());
  auto places = place();
  if (!places) return hear(places.error());
  arrangement_.emplace(spec_, plan_, key_, store_->address(), *routes, facts_, std::move(*places));
  advance(StartEvent::arranged);
}

void Driver::begin() {
  hear(heard::Arranged{});
}

namespace {

heard::Unfit for_want_of_a_route(const Unmet& unmet, const JobSpec& spec) {
  return {unmet.host,
          fmt::format("host {} {}\n  {}   # who reaches whom, and what lets them", unmet.host,
                      unmet.why, doctor_command(spec)),
          kExitNetwork};
}

}  // namespace

Result<Routes, heard::Unfit> Driver::find_routes() const {
  Routes routes;
  for (const std::string& host : plan_.hosts()) {
    const auto route = wayfinding_.way_to(host);
    if (!route) return for_want_of_a_route(route.error(), spec_);
    routes.hosts[host] = *route;
  }
  const auto route = wayfinding_.way_to(Addressing::kLauncher);
  if (!route) return for_want_of_a_route(route.error(), spec_);
  routes.launcher = *route;
  return routes;
}

Result<Unit, heard::Unfit> Driver::open_store(const Door& at) {
  wayfinding_.close_doors();
  auto store = rendezvous::StoreServer::start(loop_, {at.ip, 0}, key_, {}, spec_.placement.ports);
  if (!store)
    return heard::Unfit{plan_.hosts().front(),
                        std::move(store.error()).during("starting the job's store").text(),
                        kExitRendezvous};
  store_ = std::move(*store);
  store_->on_arrival([this](int arrived) {
    progress_.met = std::min(arrived, plan_.size());
    note_progress();
  });
  tell(news::StoreListens{store_->address().text()});
  return Unit{};
}

Result<std::vector<Place>, heard::Unfit> Driver::place() {
  auto placing = place_workers(spec_, plan_, facts_);
  if (!placing) return heard::Unfit{placing.error().host, placing.error().why};
  for (const std::string& warning : placing->warnings) tell(news::Warning{warning});
  if (spec_.placement.report) tell(news::Placed{placing->rows});
  return std::move(placing->workers);
}

void Driver::on_host(const std::string& host, const agent::Started& started) {
  if (!runs_on(started.worker, host)) return;
  const int rank = static_cast<int>(started.worker);
  tell(news::WorkerStarted{rank, host, started.pid});
  feeder_.started(rank);
  ++progress_.started;
  note_progress();
  hear(heard::Started{rank, started.pid});
}

void Driver::on_host(const std::string& host, const agent::Failed& failed) {
  if (!runs_on(failed.worker, host)) return;
  hear(heard::NotStarted{static_cast<int>(failed.worker), Error(failed.code, failed.why)});
}

void Driver::on_host(const std::string& host, const agent::Exited& exited) {
  if (!runs_on(exited.worker, host)) return;
  const int rank = static_cast<int>(exited.worker);
  desk_.finish(rank);
  feeder_.gone(rank);
  tell(news::WorkerEnded{rank, host, exited.status});
  if (exited.said.said_anything())
    doings_.try_emplace(rank, Doing{exited.said.text, exited.said.under_way(), {}, {}, 0});
  hear(heard::Exited{rank, exited.status, exited.oom.text(), exited.used});
}

void Driver::on_reached(const std::string& host, const agent::Reached& reached) {
  using us = std::chrono::microseconds;
  const news::Reaching reaching{host, us(reached.resolve_us), us(reached.connect_us),
                                us(reached.login_us), us(reached.start_us)};
  if (!rise_.slowest || rise_.slowest->took() < reaching.took()) rise_.slowest = reaching;
  tell(news::HostReached{host, reached.address, reaching.took(), reached.staged});
}

void Driver::on_not_started(const std::string& host, const Error& why) {
  const std::string text = Error(why).during("starting host " + host).text();
  hear(heard::Unreached{{host, text, "ulimit -a; free -m", kExitInternal}});
}

void Driver::on_unreachable(const std::string& host, const agent::Unreached& unreached) {
  hear(heard::Unreached{{host, unreached.why, unreached.fix, exit_code_for(unreached.kind)}});
}

void Driver::on_given_up(const std::string& host, Reason, const std::string& why) {
  hear(heard::HostEnding{host, why});
}

void Driver::on_gone(const std::string& host, const std::string& why) {
  hear(heard::HostEnded{host, why});
}

void Driver::on_host(const std::string& host, const agent::Taken& taken) {
  if (runs_on(taken.worker, host)) feeder_.taken(static_cast<int>(taken.worker), taken.bytes);
}

void Driver::on_host(const std::string& host, const agent::Finding& finding) {
  if (!runs_on(finding.worker, host)) return;
  const agent::Evidence& seen = finding.seen;
  std::string state(seen.state_text());
  if (!seen.waits_in.empty()) state += " in " + seen.waits_in;
  doings_[static_cast<int>(finding.worker)] = {
      finding.said.said_anything() ? finding.said.text : "",
      finding.said.under_way(),
      state,
      seen.frames,
      seen.rss_bytes,
      seen.has_python_dump ? stderr_file_of(finding.worker) : ""};
}

std::string Driver::stderr_file_of(std::uint32_t worker) const {
  if (spec_.output.directory.empty()) return {};
  return folder_of(static_cast<int>(worker), plan_.size()) + "/stderr";
}

void Driver::on_host(const std::string& host, const agent::Examined&) {
  hear(heard::Examined{host});
}

// An agent speaks for the workers of its own host only.
bool Driver::runs_on(std::uint32_t worker, const std::string& host) const {
  return worker < plan_.slots.size() && plan_.slots[worker].host == host;
}

void Driver::tell(const News& news) {
  if (is_detail(news) && !spec_.verbose) return;
  desk_.say(wording_(news));
}

// Acknowledged when it is written, so that a slow terminal slows the workers that write and is
// not piled up here; not each piece, since a later one speaks for all before it.  The desk may be
// at it when this driver is gone; the loop still is there.
void Driver::on_output(const std::string& host, const agent::Output& output, std::uint64_t seq) {
  if (!runs_on(output.worker, host)) return;
  std::size_t& since = unacknowledged_[host];
  since += output.bytes.size();
  Loop::Fn written = [] {};
  if (since >= agent::kAckBytes) {
    since = 0;
    const auto acknowledge = [this, host, seq] { fleet_.send(host, agent::Ack{seq}); };
    written = [&loop = loop_, acknowledge] { loop.post(acknowledge); };
  }
  desk_.put(static_cast<int>(output.worker), output.stream, text_of(output.bytes),
            WallTime(std::chrono::microseconds(output.time)), std::move(written));
}

void Driver::send_to(int rank, const agent::Down& message) {
  fleet_.send(plan_.slots[rank].host, message);
}

void Driver::carry_out(const order::Start& start) {
  send_to(start.rank, arrangement_->start_of(start.rank));
}

void Driver::carry_out(const order::Signal& signal) {
  send_to(signal.rank, agent::Signal{static_cast<std::uint32_t>(signal.rank), signal.signo});
}

void Driver::carry_out(const order::Announce& announce) {
  if (store_) store_->announce(announce.departure);
}

void Driver::carry_out(const order::Examine& examine) {
  fleet_.send(examine.host, agent::Examine{});
}

void Driver::carry_out(const order::Close& close) {
  fleet_.close(close.host);
}

void Driver::carry_out(const order::Terminate& order) {
  fleet_.terminate(order.host);
}

void Driver::carry_out(const order::Finish&) {
  loop_.stop();
}

}  // namespace corro::launcher
