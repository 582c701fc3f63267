#include "launcher/supervise/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace corro::launcher {

using rendezvous::Departure;

namespace {

int code_for(const Error& why) {
  switch (why.code()) {
    case Errc::not_found:
      return kExitNoProgram;
    case Errc::unsupported:
      return kExitCannotRun;
    default:
      return kExitInternal;
  }
}

}  // namespace

Supervisor::Supervisor(Plan plan, Policy policy, TimePoint now)
    : plan_(std::move(plan)),
      policy_(policy),
      began_(now),
      workers_(plan_.slots.size()),
      now_(now) {
  for (const Slot& slot : plan_.slots) outcome_.workers.push_back({slot.host, {}, {}});
  for (const std::string& host : plan_.hosts()) unready_.insert(host);
  open_ = unready_;
  wake_ = now + policy_.start_timeout;
}

Orders Supervisor::on(const Event& event, TimePoint now) {
  dropped_.clear();
  if (phase_ == JobPhase::finished) return {};
  now_ = now;
  std::visit([this](const auto& e) { hear(e); }, event);
  return std::exchange(orders_, {});
}

void Supervisor::hear(const heard::HostReady& ready) {
  unready_.erase(ready.host);
  begin_if_all_ready();
}

void Supervisor::hear(const heard::Arranged&) {
  arranged_ = true;
  begin_if_all_ready();
}

void Supervisor::begin_if_all_ready() {
  if (phase_ != JobPhase::gathering || !unready_.empty()) return;
  if (!outcome_.unreachable.empty()) return give_up();
  if (arranged_) move_job(JobEvent::all_ready);
}

void Supervisor::hear(const heard::Unreached& unreached) {
  if (phase_ != JobPhase::gathering)
    return hear(heard::HostEnding{unreached.host.host, unreached.host.why});
  if (outcome_.unreachable.empty())
    wake_ = std::min(wake_.value_or(TimePoint::max()), now_ + policy_.roll_call);
  outcome_.unreachable.push_back(unreached.host);
  unready_.erase(unreached.host.host);
  begin_if_all_ready();
}

bool Supervisor::is_unreachable(const std::string& host) const {
  return std::any_of(outcome_.unreachable.begin(), outcome_.unreachable.end(),
                     [&](const Unreachable& u) { return u.host == host; });
}

void Supervisor::hear(const heard::Unfit& unfit) {
  if (phase_ != JobPhase::gathering) return;
  fail({Failure::Kind::unfit, unfit.host, std::nullopt, unfit.why, unfit.exit_code});
}

void Supervisor::hear(const heard::HostEnding& ending) {
  if (phase_ != JobPhase::closing) lose_workers(ending.host, ending.why, WorkerEvent::host_ending);
}

void Supervisor::hear(const heard::HostEnded& ended) {
  open_.erase(ended.host);
  unexamined_.erase(ended.host);
  if (phase_ == JobPhase::gathering && is_unreachable(ended.host)) return;
  if (phase_ != JobPhase::closing) lose_workers(ended.host, ended.why, WorkerEvent::host_lost);
  if (phase_ == JobPhase::closing && open_.empty()) move_job(JobEvent::all_closed);
}

void Supervisor::hear(const heard::Started& started) {
  move_worker(started.rank, WorkerEvent::started);
}

void Supervisor::hear(const heard::NotStarted& failed) {
  if (!move_worker(failed.rank, WorkerEvent::failed)) return;
  announce(failed.rank, "could not be started: " + failed.why.text(), Departure::Manner::died);
  fail({Failure::Kind::not_started, plan_.slots[failed.rank].host, failed.rank, failed.why.text(),
        code_for(failed.why)});
  settle_if_all();
}

void Supervisor::hear(const heard::Exited& exited) {
  if (!move_worker(exited.rank, WorkerEvent::exited)) return;
  const ExitStatus& status = exited.status;
  outcome_.workers[exited.rank].status = status;
  outcome_.workers[exited.rank].used = exited.used;
  const auto cause =
      exited.detail.empty() ? status.text() : fmt::format("{}: {}", status.text(), exited.detail);
  announce(exited.rank, cause, status.ok() ? Departure::Manner::left : Departure::Manner::died);
  if (!status.ok())
    fail({Failure::Kind::worker, plan_.slots[exited.rank].host, exited.rank, cause,
          status.shell_code()});
  settle_if_all();
}

void Supervisor::hear(const heard::Examined& examined) {
  unexamined_.erase(examined.host);
  if (phase_ == JobPhase::last_words && unexamined_.empty() && now_ >= failed_ + policy_.last_words)
    move_job(JobEvent::time_up);
}

// A terminal that closes may say so twice, and in no hurry.
void Supervisor::hear(const heard::Interrupted& interrupted) {
  if (outcome_.interrupted_by && interrupted.signo == SIGHUP) return;
  if (!outcome_.interrupted_by) outcome_.interrupted_by = interrupted.signo;
  move_job(JobEvent::interrupt);
}

void Supervisor::hear(const heard::Spoken& spoken) {
  for (const Slot& slot : plan_.slots)
    if (workers_[slot.rank].living()) orders_.push_back(order::Signal{slot.rank, spoken.signo});
}

void Supervisor::hear(const heard::Held& held) {
  if (wake_) *wake_ += held.time;
  failed_ += held.time;
}

void Supervisor::hear(const heard::Tick&) {
  if (!wake_ || now_ < *wake_) return;
  wake_.reset();
  if (phase_ == JobPhase::gathering) return give_up();
  if (phase_ == JobPhase::last_words && !unexamined_.empty() && now_ < failed_ + policy_.evidence) {
    wake_ = failed_ + policy_.evidence;
    return;
  }
  if (phase_ == JobPhase::closing)
    for (const std::string& host : open_) orders_.push_back(order::Terminate{host});
  move_job(JobEvent::time_up);
}

void Supervisor::give_up() {
  if (!outcome_.unreachable.empty()) {
    const Unreachable& first = outcome_.unreachable.front();
    return fail({Failure::Kind::host, first.host, std::nullopt, first.why, first.exit_code});
  }
  const auto host = unready_.empty() ? plan_.hosts().front() : *unready_.begin();
  const auto waited = std::chrono::ceil<std::chrono::seconds>(policy_.start_timeout).count();
  fail({Failure::Kind::host, host, std::nullopt, fmt::format("did not answer within {} s", waited),
        kExitTimeout});
}

bool Supervisor::move_worker(int rank, WorkerEvent event) {
  if (rank < 0 || rank >= plan_.size()) return false;
  const auto to = next(kWorkerLife, workers_[rank].phase, event);
  if (to)
    workers_[rank].phase = *to;
  else
    dropped_.push_back(fmt::format("rank {}: no edge for {} in phase {}", rank, name_of(event),
                                   name_of(workers_[rank].phase)));
  return to.has_value();
}

void Supervisor::move_job(JobEvent event) {
  if (const auto to = next(kJobLife, phase_, event))
    enter(*to);
  else
    dropped_.push_back(
        fmt::format("job: no edge for {} in phase {}", name_of(event), name_of(phase_)));
}

void Supervisor::enter(JobPhase phase) {
  phase_ = phase;
  wake_.reset();
  switch (phase) {
    case JobPhase::gathering:
      break;
    case JobPhase::running:
      for (const int rank : diff(Plan{}, plan_).start)
        if (move_worker(rank, WorkerEvent::start)) orders_.push_back(order::Start{rank});
      break;
    case JobPhase::last_words:
      failed_ = now_;
      wake_ = now_ + policy_.last_words;
      for (const Slot& slot : plan_.slots)
        if (workers_[slot.rank].living() && open_.contains(slot.host) &&
            unexamined_.insert(slot.host).second)
          orders_.push_back(order::Examine{slot.host});
      break;
    case JobPhase::terminating:
      signal_living(SIGTERM);
      wake_ = now_ + policy_.grace;
      break;
    case JobPhase::killing:
      signal_living(SIGKILL);
      wake_ = now_ + policy_.reports;
      break;
    case JobPhase::closing:
      for (const std::string& host : open_) orders_.push_back(order::Close{host});
      wake_ = now_ + policy_.patience;
      if (open_.empty()) move_job(JobEvent::all_closed);
      break;
    case JobPhase::finished:
      outcome_.took = now_ - began_;
      orders_.push_back(order::Finish{});
      break;
  }
}

// Only the first failure is a cause.  One that follows an interrupt is its consequence.
void Supervisor::fail(Failure failure) {
  if (outcome_.failure || outcome_.interrupted_by) return;
  failure.after = now_ - began_;
  outcome_.failure = std::move(failure);
  move_job(JobEvent::failure);
}

void Supervisor::lose_workers(const std::string& host, const std::string& why, WorkerEvent event) {
  std::optional<int> first;
  for (const Slot& slot : plan_.slots) {
    if (slot.host != host) continue;
    const bool known = workers_[slot.rank].phase == WorkerPhase::ending;
    if (!move_worker(slot.rank, event) || known) continue;
    if (!first) first = slot.rank;
    announce(slot.rank, "was lost with its host: " + why, Departure::Manner::died);
  }
  if (first) fail({Failure::Kind::host, host, first, why, kExitHostLost});
  settle_if_all();
}

void Supervisor::announce(int rank, const std::string& cause, Departure::Manner manner) {
  orders_.push_back(
      order::Announce{{plan_.generation, rank, plan_.slots[rank].host, cause, manner}});
}

void Supervisor::signal_living(int signo) {
  for (const Slot& slot : plan_.slots) {
    if (!workers_[slot.rank].living()) continue;
    outcome_.workers[slot.rank].told_to_stop = signo;
    orders_.push_back(order::Signal{slot.rank, signo});
  }
}

void Supervisor::settle_if_all() {
  const auto settled = [](const Worker& worker) { return worker.settled(); };
  if (std::all_of(workers_.begin(), workers_.end(), settled)) move_job(JobEvent::all_settled);
}

}  // namespace corro::launcher
