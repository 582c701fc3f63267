#include "launcher/fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace corro::launcher {

namespace {

std::uint32_t milliseconds(Duration d) {
  return static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::milliseconds>(d).count());
}

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

bool Fleet::Member::is_logging_in() const {
  return !host.is_here && session &&
         (phase == HostPhase::connecting || phase == HostPhase::unreachable);
}

Fleet::Fleet(const std::vector<Host>& hosts, const Options& options, Now now, Open open,
             FleetClient& client)
    : options_(options),
      now_(std::move(now)),
      open_(std::move(open)),
      client_(client),
      renewal_(now_() + options.lease.renewal),
      wake_(renewal_) {
  for (const Host& host : hosts) {
    places_[host.name] = members_.size();
    members_.push_back({host});
  }
}

bool Fleet::move(Member& member, HostEvent event) {
  const auto to = next(kHostLife, member.phase, event);
  if (!to) {
    log(LogLevel::debug, fmt::format("host {}: no edge for {} in phase {}", member.host.name,
                                     name_of(event), name_of(member.phase)));
    return false;
  }
  member.phase = *to;
  return true;
}

void Fleet::open() {
  is_opening_ = true;
  open_next();
}

void Fleet::open_next() {
  auto logins = std::count_if(members_.begin(), members_.end(),
                              [](const Member& m) { return m.is_logging_in(); });
  for (Member& member : members_) {
    if (!is_opening_ || logins >= options_.logins_at_once) return;
    if (member.phase != HostPhase::waiting) continue;
    open(member);
    if (member.is_logging_in()) ++logins;
  }
}

void Fleet::open(Member& member) {
  auto session =
      open_(member.host.name,
            {.on_message = [this, &member](const agent::Up& up,
                                           std::uint64_t seq) { on_message(member, up, seq); },
             .on_end = [this, &member](const std::string& why) { on_end(member, why); }});
  if (!session) {
    move(member, HostEvent::fail);
    deferred_.push_back(
        [this, &member, why = session.error()] { client_.on_not_started(member.host.name, why); });
    return;
  }
  move(member, HostEvent::open);
  member.session = std::move(*session);
  member.session->send(agent::Hello{CORRO_VERSION, milliseconds(options_.lease.length),
                                    milliseconds(options_.grace)});
  if (!options_.login_timeout) return;
  member.deadline = now_() + *options_.login_timeout;
  wake_ = std::min(wake_, *member.deadline);
}

void Fleet::on_message(Member& member, const agent::Up& up, std::uint64_t seq) {
  const std::string& host = member.host.name;
  if (member.lease) member.lease->heard(now_());
  if (const auto* ready = std::get_if<agent::Ready>(&up)) return on_ready(member, *ready);
  if (const auto* reached = std::get_if<agent::Reached>(&up))
    return client_.on_reached(host, *reached);
  if (const auto* unreached = std::get_if<agent::Unreached>(&up)) {
    member.deadline.reset();
    move(member, HostEvent::fail);
    return client_.on_unreachable(host, *unreached);
  }
  if (const auto* facts = std::get_if<agent::Facts>(&up)) {
    if (move(member, HostEvent::surveyed)) client_.on_surveyed(host, *facts);
    return;
  }
  if (const auto* probed = std::get_if<agent::Knocked>(&up)) {
    if (move(member, HostEvent::probed)) client_.on_probed(host, *probed);
    return;
  }
  if (const auto* ending = std::get_if<agent::Ending>(&up))
    return give_up(member, FleetClient::Reason::agent, ending->why);
  if (!std::holds_alternative<agent::Alive>(up)) client_.on_message(host, up, seq);
}

void Fleet::on_ready(Member& member, const agent::Ready& ready) {
  member.deadline.reset();
  if (ready.version != CORRO_VERSION) {
    member.session->terminate();
    return give_up(member, FleetClient::Reason::version,
                   fmt::format("it runs version {}, and this is {}", ready.version, CORRO_VERSION));
  }
  if (!move(member, HostEvent::ready)) return;
  if (options_.gives_up_silent_hosts) member.lease.emplace(options_.lease.length, now_());
  client_.on_ready(member.host.name, ready);
  open_next();
}

void Fleet::on_end(Member& member, const std::string& why) {
  member.lease.reset();
  member.deadline.reset();
  move(member, HostEvent::end);
  client_.on_gone(member.host.name, why);
  open_next();
}

// An agent that has said why goes on to be heard: its workers have their grace.
void Fleet::give_up(Member& member, FleetClient::Reason reason, const std::string& why) {
  if (reason != FleetClient::Reason::agent) member.lease.reset();
  move(member, HostEvent::give_up);
  client_.on_given_up(member.host.name, reason, why);
}

void Fleet::tick() {
  for (auto events = std::exchange(deferred_, {}); !events.empty(); events.pop_front())
    events.front()();
  if (now_() < wake_) return;
  if (now_() >= renewal_) renew_leases();
  give_up_silent();
  give_up_slow_logins();
  set_wake();
}

void Fleet::renew_leases() {
  send_all(agent::Lease{});
  renewal_ = now_() + options_.lease.renewal;
}

// What an agent does when it does not hear from the launcher, the launcher does as well: the host
// is given up, and its agent ends what runs there.
void Fleet::give_up_silent() {
  for (Member& member : members_) {
    if (!member.lease || !member.lease->check(now_())) continue;
    member.session->terminate();
    give_up(member, FleetClient::Reason::silence,
            fmt::format("it was not heard of for {:.1f} s", seconds(options_.lease.length)));
  }
}

void Fleet::give_up_slow_logins() {
  for (Member& member : members_) {
    if (!member.deadline || now_() < *member.deadline) continue;
    member.deadline.reset();
    move(member, HostEvent::fail);
    member.session->terminate();
    client_.on_unreachable(member.host.name, {agent::Barrier::unreachable,
                                              fmt::format("nothing was heard of it for {:.0f} s",
                                                          seconds(*options_.login_timeout)),
                                              ""});
  }
}

void Fleet::set_wake() {
  wake_ = renewal_;
  for (const Member& member : members_) {
    if (member.lease) wake_ = std::min(wake_, member.lease->wake().value_or(wake_));
    if (member.deadline) wake_ = std::min(wake_, *member.deadline);
  }
}

void Fleet::send(const std::string& host, const agent::Down& message) {
  if (Member& to = member(host); to.session) to.session->send(message);
}

void Fleet::send_all(const agent::Down& message) {
  for (Member& member : members_)
    if (member.session) member.session->send(message);
}

void Fleet::close(const std::string& host) {
  is_opening_ = false;
  Member& leaving = member(host);
  if (!leaving.session) {
    if (move(leaving, HostEvent::end))
      deferred_.push_back([this, host] { client_.on_gone(host, "it was not begun"); });
    return;
  }
  if (leaving.is_logging_in())
    leaving.session->terminate();
  else
    leaving.session->send(agent::Close{});
  move(leaving, HostEvent::close);
}

void Fleet::terminate(const std::string& host) {
  Member& leaving = member(host);
  if (!leaving.session) return;
  if (leaving.phase != HostPhase::closing && leaving.phase != HostPhase::gone)
    move(leaving, HostEvent::close);
  leaving.session->terminate();
}

void Fleet::hold() {
  send_all(agent::Hold{});
  for (Member& member : members_) {
    if (member.session) member.session->flush();
    if (member.lease) member.lease->pause();
  }
}

void Fleet::resume() {
  send_all(agent::Resume{});
  for (Member& member : members_)
    if (member.lease) member.lease->resume(now_());
}

bool Fleet::all_in(std::initializer_list<HostPhase> phases) const {
  return std::all_of(members_.begin(), members_.end(), [&](const Member& m) {
    return std::find(phases.begin(), phases.end(), m.phase) != phases.end();
  });
}

}  // namespace corro::launcher
