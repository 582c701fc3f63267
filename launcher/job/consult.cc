#include "launcher/job/consult.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <set>

#include "base/crypto.h"
#include "base/loop.h"
#include "base/text.h"
#include "launcher/job/host_survey.h"
#include "launcher/machine/script.h"
#include "launcher/network/addressing.h"
#include "launcher/network/interfaces.h"
#include "launcher/network/reception.h"
#include "launcher/pipe/rsh_command.h"
#include "launcher/session/process_session.h"

namespace corro::launcher {

namespace {

using doctor::Consultation;

// The session of a host that has just ended is a pipe that nobody reads.
class WithoutSigpipe {
 public:
  WithoutSigpipe() : before_(::signal(SIGPIPE, SIG_IGN)) {}
  ~WithoutSigpipe() { ::signal(SIGPIPE, before_); }
  WithoutSigpipe(const WithoutSigpipe&) = delete;

 private:
  void (*before_)(int);
};

// As the pipe goes there, with {host} for the host; of ssh without it, since it comes last.
std::string way_by_hand(const Reach& reach) {
  const bool by_ssh = reach.rsh_agent.empty();
  Target target;
  target.host = "{host}";
  target.port = reach.ssh_port;
  target.identities = reach.identities;
  target.rsh_agent = by_ssh ? std::vector<std::string>{"ssh"} : reach.rsh_agent;
  auto words = rsh_command(target);
  words.resize(words.size() - (by_ssh ? 2 : 1));
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    out += word.find(target.host) == word.npos ? shell_word(word) : word;
  }
  return out;
}

std::set<std::string> hosts_here(const JobSpec& spec) {
  std::set<std::string> out;
  const auto names = names_of_this_machine();
  for (const HostSpec& host : spec.hosts)
    if (is_this_machine(host.name, names)) out.insert(host.name);
  return out;
}

std::chrono::microseconds wall_clock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now);
}

// A survey on a loop of its own, with real sessions.
class Consulting {
 public:
  Consulting(const JobSpec& spec, const WatchConsult& watch, Look look) : spec_(spec) {
    HostSurvey::Setup setup{.look = look,
                            .here = hosts_here(spec),
                            .key = Key::random(),
                            .launcher_doors = {},
                            .now = [this] { return loop_.now(); },
                            .wall_clock = wall_clock,
                            .open = {},
                            .watch = watch};
    if (look == Look::all && setup.here.size() < spec.hosts.size()) {
      reception_.emplace(loop_, setup.key, Addressing::kLauncher,
                         narrowed(own_addresses(), spec.placement.interfaces),
                         spec.placement.ports);
      setup.launcher_doors = reception_->doors();
    }
    setup.open = [this, here = setup.here](const std::string& host, Session::Events events) {
      return open(host, here.contains(host), std::move(events));
    };
    survey_.emplace(spec, std::move(setup));
  }

  Consultation run() {
    survey_->begin();
    set_alarm();
    loop_.run();
    Consultation out = survey_->take_result();
    const auto script = look_for_script({spec_.cwd, spec_.command, survey_->question().env, {}});
    survey_.reset();  // and with it what is left of the sessions
    out.here = machine_identity();
    if (!spec_.command.empty()) out.program = spec_.command.front();
    out.script_is_here = script && script->can_read;
    out.first_port = spec_.placement.ports.first;
    out.last_port = spec_.placement.ports.last;
    (spec_.reach.rsh_agent.empty() ? out.ssh : out.rsh) = way_by_hand(spec_.reach);
    return out;
  }

 private:
  Result<std::unique_ptr<Session>> open(const std::string& name, bool here,
                                        Session::Events events) {
    const auto host = std::find_if(spec_.hosts.begin(), spec_.hosts.end(),
                                   [&](const HostSpec& h) { return h.name == name; });
    return ProcessSession::start(
        loop_, spawner_, agent_command(spec_.self, *host, spec_.reach, here, spec_.start_timeout),
        {.on_message =
             [this, tell = std::move(events.on_message)](const agent::Up& up, std::uint64_t seq) {
               tell(up, seq);
               set_alarm();
             },
         .on_end =
             [this, tell = std::move(events.on_end)](const std::string& why) {
               tell(why);
               set_alarm();
             }});
  }

  void set_alarm() {
    if (survey_->finished()) return loop_.stop();
    alarm_ = loop_.at(survey_->wake(), [this] {
      survey_->tick();
      set_alarm();
    });
  }

  const JobSpec& spec_;
  Loop loop_;
  Spawner spawner_;
  std::optional<Reception> reception_;
  std::optional<HostSurvey> survey_;
  Loop::Timer alarm_;
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
