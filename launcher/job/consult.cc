#include "launcher/job/consult.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "base/crypto.h"
#include "base/loop.h"
#include "base/text.h"
#include "launcher/job/placing.h"
#include "launcher/machine/script.h"
#include "launcher/network/addressing.h"
#include "launcher/network/interfaces.h"
#include "launcher/network/reception.h"
#include "launcher/pipe/rsh_command.h"
#include "launcher/plan/plan.h"
#include "launcher/session/process_session.h"

namespace corro::launcher {

namespace {

using namespace std::chrono_literals;
using doctor::Barrier;
using doctor::Consultation;
using doctor::HostReport;

constexpr auto kLease = 5s;
constexpr auto kRenewal = 1s;
constexpr auto kToConnect = 5s;  // more than the pipe gives itself: it says best why it gave up
constexpr auto kToInspect = 8s;  // an NVIDIA driver may take three seconds, a cold Python two
constexpr auto kToAnswer = 2s;   // more than that, for the answer to come
constexpr auto kToKnock = 8s;
constexpr auto kToClose = 2s;
constexpr std::size_t kEveryoneMost = 64;  // hosts, up to which each tries all others

std::uint32_t milliseconds(Duration d) {
  return static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::milliseconds>(d).count());
}

std::chrono::microseconds wall_clock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now);
}

std::map<std::string, int> workers_by_host(const JobSpec& spec) {
  std::map<std::string, int> out;
  const auto plan = make_plan(spec.hosts, spec.np, 0);
  for (const HostSpec& host : spec.hosts) out[host.name] = plan ? 0 : host.slots;
  if (plan)
    for (const Slot& slot : plan->slots) ++out[slot.host];
  return out;
}

Barrier::Kind kind_of(agent::Barrier barrier) {
  switch (barrier) {
    case agent::Barrier::name:
      return Barrier::Kind::name;
    case agent::Barrier::unreachable:
      return Barrier::Kind::unreachable;
    case agent::Barrier::host_key_unknown:
      return Barrier::Kind::host_key_unknown;
    case agent::Barrier::host_key_changed:
      return Barrier::Kind::host_key_changed;
    case agent::Barrier::refused:
      return Barrier::Kind::refused;
    case agent::Barrier::unsupported:
      return Barrier::Kind::unsupported;
    case agent::Barrier::shell:
      return Barrier::Kind::shell;
    case agent::Barrier::staging:
      return Barrier::Kind::staging;
    case agent::Barrier::machine:
      return Barrier::Kind::machine;
    case agent::Barrier::lost:
      return Barrier::Kind::lost;
  }
  return Barrier::Kind::lost;
}

agent::Inspect question(const JobSpec& spec) {
  agent::Inspect out{spec.cwd, spec.command, {}, milliseconds(kToInspect)};
  for (const auto& [name, value] : user_variables(spec.environment))
    out.env.push_back(fmt::format("{}={}", name, value));
  return out;
}

// As NTP does: what the host took between question and answer is not the way's.
void note_times(std::chrono::microseconds sent, const agent::Inspected& answer, HostReport& to) {
  const auto came = wall_clock();
  const std::chrono::microseconds asked(answer.asked_us), answered(answer.answered_us);
  const auto delay = std::max(0us, (came - sent) - (answered - asked));
  to.round_trip = delay;
  to.clock = {((asked - sent) + (answered - came)) / 2, delay / 2};
}

// The session of a host that has just ended is a pipe that nobody reads.
class WithoutSigpipe {
 public:
  WithoutSigpipe() : before_(::signal(SIGPIPE, SIG_IGN)) {}
  ~WithoutSigpipe() { ::signal(SIGPIPE, before_); }
  WithoutSigpipe(const WithoutSigpipe&) = delete;

 private:
  void (*before_)(int);
};

class Consulting {
 public:
  Consulting(const JobSpec& spec, WatchConsult watch, Look look)
      : spec_(spec), watch_(std::move(watch)), look_(look), question_(question(spec)) {
    const auto names = names_of_this_machine();
    const auto workers = workers_by_host(spec);
    for (const HostSpec& host : spec.hosts) {
      Visit& visit = visits_.emplace_back(Visit{&host});
      visit.report.host = host.name;
      visit.report.user = host.user;
      visit.report.workers = workers.at(host.name);
      visit.report.is_here = is_this_machine(host.name, names);
    }
  }

  Consultation run() {
    if (look_ == Look::all && std::any_of(visits_.begin(), visits_.end(),
                                          [](const Visit& visit) { return !visit.report.is_here; }))
      reception_.emplace(loop_, key_, Addressing::kLauncher,
                         narrowed(own_addresses(), spec_.placement.interfaces),
                         spec_.placement.ports);
    renew_leases();
    loop_.post([this] { open_next(); });
    loop_.run();
    return result();
  }

 private:
  struct Visit {
    const HostSpec* host;
    HostReport report{};
    std::unique_ptr<Session> session{};
    Loop::Timer patience{};
    std::chrono::microseconds asked{};
    std::optional<std::vector<Door>> doors{};
    bool opened = false, connecting = false, ended = false, has_knocked = false;

    bool is_done() const { return report.barrier || (report.seen && doors); }
    bool is_well() const { return !report.barrier && report.seen && doors; }
  };

  void open_next() {
    for (Visit& visit : visits_) {
      const auto busy = std::count_if(visits_.begin(), visits_.end(),
                                      [](const Visit& v) { return v.connecting; });
      if (busy >= spec_.reach.at_once) break;
      if (!visit.opened) open(visit);
    }
    go_on();
  }

  void open(Visit& visit) {
    visit.opened = true;
    auto session = ProcessSession::start(
        loop_, spawner_,
        agent_command(spec_.self, *visit.host, spec_.reach, visit.report.is_here,
                      spec_.start_timeout),
        {.on_message = [this, &visit](const agent::Up& up,
                                      std::uint64_t) { on_message(visit, up); },
         .on_end = [this, &visit](const std::string& why) { on_end(visit, why); }});
    if (!session) {
      visit.ended = true;
      return fail(visit, Barrier::Kind::machine, session.error().text());
    }
    visit.session = std::move(*session);
    visit.connecting = !visit.report.is_here;
    visit.session->send(agent::Hello{CORRO_VERSION, milliseconds(kLease), 0});
    expect(visit, spec_.start_timeout + kToConnect, Barrier::Kind::unreachable);
  }

  void expect(Visit& visit, Duration patience, Barrier::Kind kind) {
    visit.patience = loop_.at(loop_.now() + patience, [this, &visit, patience, kind] {
      fail(visit, kind,
           fmt::format("nothing was heard of it for {:.0f} s",
                       std::chrono::duration<double>(patience).count()));
    });
  }

  void fail(Visit& visit, Barrier::Kind kind, std::string why, std::string fix = {}) {
    visit.patience = {};
    visit.connecting = false;
    if (!visit.report.barrier && step_ != Step::closing)
      visit.report.barrier = Barrier{kind, std::move(why), std::move(fix)};
    if (visit.session) visit.session->terminate();
    loop_.post([this] { open_next(); });
  }

  void on_message(Visit& visit, const agent::Up& up) {
    if (const auto* reached = std::get_if<agent::Reached>(&up)) on(visit, *reached);
    if (const auto* unreached = std::get_if<agent::Unreached>(&up))
      fail(visit, kind_of(unreached->kind), unreached->why, unreached->fix);
    if (const auto* ready = std::get_if<agent::Ready>(&up)) on(visit, *ready);
    if (const auto* facts = std::get_if<agent::Facts>(&up)) on(visit, *facts);
    if (const auto* inspected = std::get_if<agent::Inspected>(&up)) on(visit, *inspected);
    if (const auto* knocked = std::get_if<agent::Knocked>(&up)) on(visit, *knocked);
    if (visit.is_done()) visit.patience = {};
    go_on();
  }

  void on(Visit& visit, const agent::Reached& reached) {
    using std::chrono::microseconds;
    visit.report.arrival = doctor::Arrival{.address = reached.address,
                                           .resolve = microseconds(reached.resolve_us),
                                           .connect = microseconds(reached.connect_us),
                                           .login = microseconds(reached.login_us),
                                           .start = microseconds(reached.start_us),
                                           .staged = reached.staged,
                                           .attempts = static_cast<int>(reached.attempts),
                                           .host_key = reached.host_key};
  }

  void on(Visit& visit, const agent::Ready& ready) {
    visit.connecting = false;
    if (ready.version != CORRO_VERSION)
      return fail(visit, Barrier::Kind::version,
                  fmt::format("it runs version {}, and this is {}", ready.version, CORRO_VERSION));
    if (!visit.report.arrival) visit.report.arrival.emplace();
    agent::Survey survey{.gpus = look_ == Look::gpus,
                         .first_port = spec_.placement.ports.first,
                         .last_port = spec_.placement.ports.last};
    if (reception_) survey.doors = opener_for(*visit.host, spec_.placement, key_);
    visit.session->send(survey);
    visit.asked = wall_clock();
    if (look_ == Look::all) visit.session->send(question_);
    expect(visit, kToInspect + kToAnswer, Barrier::Kind::silent);
    loop_.post([this] { open_next(); });
  }

  void on(Visit& visit, const agent::Facts& facts) {
    visit.doors = facts.doors;
    if (look_ == Look::gpus) visit.report.seen.emplace().gpus = facts.gpus;
  }

  void on(Visit& visit, const agent::Inspected& inspected) {
    visit.report.seen = inspected.seen;
    note_times(visit.asked, inspected, visit.report);
  }

  void on_end(Visit& visit, const std::string& why) {
    visit.ended = true;
    fail(visit, visit.report.arrival ? Barrier::Kind::lost : Barrier::Kind::machine, why);
  }

  // From one step to the next, when all hosts have come so far or are given up.
  void go_on() {
    const auto all = [&](auto is) { return std::all_of(visits_.begin(), visits_.end(), is); };
    tell();
    if (step_ == Step::looking && all([](const Visit& v) { return v.is_done(); })) {
      step_ = Step::knocking;
      knock();
    }
    if (step_ == Step::knocking &&
        all([](const Visit& v) { return v.has_knocked || !v.is_well() || v.ended; }))
      close();
    if (step_ == Step::closing && all([](const Visit& v) { return v.ended || !v.session; }))
      loop_.stop();
  }

  void tell() {
    ConsultProgress now{static_cast<int>(visits_.size())};
    for (const Visit& visit : visits_) {
      if (visit.report.arrival) ++now.reached;
      if (visit.is_done()) ++now.done;
    }
    if (watch_) watch_(now);
  }

  void knock() {
    for (Visit& visit : visits_) {
      if (!visit.is_well()) continue;
      if (reception_)
        visit.session->send(agent::Knock{doorways_for(visit)});
      else
        visit.has_knocked = true;
    }
    knock_end_ = loop_.at(loop_.now() + kToKnock, [this] {
      for (Visit& visit : visits_)
        if (visit.is_well() && !visit.has_knocked)
          fail(visit, Barrier::Kind::silent, "it did not say which hosts it reaches");
      close();
    });
  }

  // Each host tries all others; where these are many, its neighbours and the first, as in a job.
  std::vector<Doorway> doorways_for(const Visit& visit) const {
    std::vector<std::string> well;
    for (const Visit& other : visits_)
      if (other.is_well()) well.push_back(other.report.host);
    Addressing few(well);
    few.has_doors(Addressing::kLauncher, reception_->doors());
    std::vector<Doorway> everyone = {{Addressing::kLauncher, reception_->doors()}};
    for (const Visit& other : visits_)
      if (other.is_well()) {
        few.has_doors(other.report.host, *other.doors);
        if (&other != &visit) everyone.push_back({other.report.host, *other.doors});
      }
    return well.size() <= kEveryoneMost ? everyone : few.to_knock_at(visit.report.host);
  }

  void on(Visit& visit, const agent::Knocked& knocked) {
    visit.has_knocked = true;
    for (const Opening& opening : knocked.openings) {
      const std::vector<Door>& doors = doors_of(opening.host);
      const std::string to = opening.host == Addressing::kLauncher ? "the launcher" : opening.host;
      for (std::uint32_t i = 0; i < doors.size(); ++i) {
        const bool open =
            std::find(opening.doors.begin(), opening.doors.end(), i) != opening.doors.end();
        routes_.push_back({visit.report.host, to, doors[i].ip, open, open ? "" : opening.trouble});
      }
    }
  }

  const std::vector<Door>& doors_of(const std::string& host) const {
    static const std::vector<Door> kNone;
    if (host == Addressing::kLauncher) return reception_ ? reception_->doors() : kNone;
    for (const Visit& visit : visits_)
      if (visit.report.host == host && visit.doors) return *visit.doors;
    return kNone;
  }

  void close() {
    if (step_ == Step::closing) return;
    step_ = Step::closing;
    for (Visit& visit : visits_)
      if (visit.session && !visit.ended) visit.session->send(agent::Close{});
    knock_end_ = loop_.at(loop_.now() + kToClose, [this] {
      for (Visit& visit : visits_)
        if (visit.session) visit.session->terminate();
      knock_end_ = loop_.at(loop_.now() + kToClose, [this] { loop_.stop(); });
    });
    loop_.post([this] { go_on(); });
  }

  void renew_leases() {
    for (Visit& visit : visits_)
      if (visit.session && !visit.ended) visit.session->send(agent::Lease{});
    lease_ = loop_.at(loop_.now() + kRenewal, [this] { renew_leases(); });
  }

  Consultation result() {
    Consultation out;
    for (Visit& visit : visits_) {
      visit.session.reset();
      out.hosts.push_back(std::move(visit.report));
    }
    out.routes = std::move(routes_);
    out.here = machine_identity();
    if (!spec_.command.empty()) out.program = spec_.command.front();
    const auto script = look_for_script({spec_.cwd, spec_.command, question_.env, {}});
    out.script_is_here = script && script->can_read;
    out.first_port = spec_.placement.ports.first;
    out.last_port = spec_.placement.ports.last;
    (spec_.reach.rsh_agent.empty() ? out.ssh : out.rsh) = way_by_hand();
    return out;
  }

  // As the pipe goes there, with {host} for the host; of ssh without it, since it comes last.
  std::string way_by_hand() const {
    const bool by_ssh = spec_.reach.rsh_agent.empty();
    Target target;
    target.host = "{host}";
    target.port = spec_.reach.ssh_port;
    target.identities = spec_.reach.identities;
    target.rsh_agent = by_ssh ? std::vector<std::string>{"ssh"} : spec_.reach.rsh_agent;
    auto words = rsh_command(target);
    words.resize(words.size() - (by_ssh ? 2 : 1));
    std::string out;
    for (const std::string& word : words) {
      if (!out.empty()) out += ' ';
      out += word.find(target.host) == word.npos ? shell_word(word) : word;
    }
    return out;
  }

  enum class Step { looking, knocking, closing };

  const JobSpec& spec_;
  const WatchConsult watch_;
  const Look look_;
  const agent::Inspect question_;
  const Key key_ = Key::random();
  Loop loop_;
  Spawner spawner_;
  std::optional<Reception> reception_;
  std::deque<Visit> visits_;  // which stay where they are
  std::vector<doctor::Route> routes_;
  Step step_ = Step::looking;
  Loop::Timer lease_, knock_end_;
};

}  // namespace

doctor::Consultation consult(const JobSpec& spec, const WatchConsult& watch, Look look) {
  const WithoutSigpipe ignored;
  return Consulting(spec, watch, look).run();
}

std::string doctor_command(const JobSpec& spec) {
  std::string text = "horovodrun doctor";
  const auto add = [&](std::string_view option, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {} {}", option, shell_word(value));
  };
  const Reach& reach = spec.reach;
  const Placement& placement = spec.placement;
  add("-H", print_hosts(spec.hosts, HostFormat::horovod));
  add("-p", reach.ssh_port ? std::to_string(reach.ssh_port) : "");
  for (const std::string& file : reach.identities) add("-i", file);
  std::string agent;
  for (const std::string& word : reach.rsh_agent)
    agent += (agent.empty() ? "" : " ") + shell_word(word);
  add("--rsh-agent", agent);
  add("--network-interfaces", fmt::format("{}", fmt::join(placement.interfaces, ",")));
  add("--port-range", placement.ports.first ? placement.ports.text() : "");
  return text;
}

}  // namespace corro::launcher
