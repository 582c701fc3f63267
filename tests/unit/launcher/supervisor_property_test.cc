#include <rapidcheck/catch.h>

#include <map>
#include <queue>
#include <set>

#include "stage.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

using Millis = std::chrono::milliseconds;

// What will happen to a worker and to a host, if nothing else does before.
struct WorkerFate {
  Millis life{};
  ExitStatus end;
  bool heeds_term = true, heeds_kill = true;
};
struct HostFate {
  enum class Kind { lasts, vanishes, gives_up };
  std::optional<Millis> ready_after;  // none: it never answers
  Kind kind = Kind::lasts;
  Millis at{};
  bool heeds_close = true;
};
struct Fates {
  std::map<std::string, HostFate> hosts;
  std::vector<WorkerFate> workers;
  std::vector<Millis> interrupts;
};

constexpr Millis kLongestLife = 60s;
constexpr Millis kMoment = 3ms;  // for an order to be carried out and its result to be heard

// All of the range, from the first case on.
long one_of(long count) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<long>(0, count));
}

bool likely(int percent) {
  return one_of(100) < percent;
}

Millis some_time(Millis most) {
  return Millis(one_of(most.count()));
}

Fates some_fates(const Plan& plan) {
  Fates fates;
  for (const std::string& host : plan.hosts()) {
    HostFate& fate = fates.hosts[host];
    if (likely(95)) fate.ready_after = some_time(10s);
    if (likely(10)) fate.kind = likely(50) ? HostFate::Kind::vanishes : HostFate::Kind::gives_up;
    fate.at = some_time(kLongestLife);
    fate.heeds_close = likely(90);
  }
  for (int rank = 0; rank < plan.size(); ++rank) {
    WorkerFate& fate = fates.workers.emplace_back();
    fate.life = some_time(kLongestLife);
    fate.end = likely(90)
                   ? ExitStatus::exited(0)
                   : *rc::gen::element(ExitStatus::exited(3), ExitStatus::exited(255),
                                       ExitStatus::killed(SIGKILL), ExitStatus::killed(SIGSEGV));
    fate.heeds_term = likely(80);
    fate.heeds_kill = likely(95);
  }
  for (long i = likely(80) ? 0 : one_of(3); i > 0; --i)
    fates.interrupts.push_back(some_time(kLongestLife));
  return fates;
}

// Plays one job out in virtual time.  Hosts and workers follow their fates and the orders; what
// happened is kept apart from what the supervisor made of it.
class World {
 public:
  World(const Plan& plan, Fates fates)
      : plan_(plan), fates_(std::move(fates)), supervisor_(plan, {}, now_) {
    for (const auto& [host, fate] : fates_.hosts) {
      if (fate.ready_after) later(*fate.ready_after, heard::HostReady{host});
      if (fate.kind == HostFate::Kind::vanishes) later(fate.at, heard::HostEnded{host, "vanished"});
      if (fate.kind == HostFate::Kind::gives_up) {
        later(fate.at, heard::HostEnding{host, "gave up"});
        later(fate.at + 5s, heard::HostEnded{host, "gave up"});
      }
    }
    for (const Millis at : fates_.interrupts) later(at, heard::Interrupted{SIGINT});
    later(0s, heard::Arranged{});
  }

  void play() {
    while (!finished_) {
      const auto wake = supervisor_.wake();
      const bool has_event = !coming_.empty();
      RC_ASSERT(has_event || wake);  // else it would hang for ever
      if (has_event && (!wake || coming_.top().at <= *wake)) {
        const Coming next = coming_.top();
        coming_.pop();
        now_ = next.at;
        if (happens(next.event)) hear(next.event);
      } else {
        now_ = *wake;
        hear(heard::Tick{});
      }
    }
  }

  bool success() const { return !interrupted_ && good_ends_.size() == plan_.slots.size(); }
  const Outcome& outcome() const { return supervisor_.outcome(); }
  std::optional<int> first_bad_code() const { return first_bad_code_; }
  Duration took() const { return now_ - TimePoint(); }

 private:
  struct Coming {
    TimePoint at;
    long order;
    Event event;
    bool operator<(const Coming& other) const {
      return std::pair(at, order) >
             std::pair(other.at, other.order);  // the queue's top is the largest
    }
  };

  void later(Duration in, Event event) {
    coming_.push({now_ + in, ++last_order_, std::move(event)});
  }

  const std::string& host_of(int rank) const { return plan_.slots[rank].host; }

  // Whether this can still happen; and what the world itself makes of it.
  bool happens(const Event& event) {
    if (const auto* ready = std::get_if<heard::HostReady>(&event))
      return !gone_.contains(ready->host);
    if (const auto* ending = std::get_if<heard::HostEnding>(&event))
      return !gone_.contains(ending->host) && giving_up_.insert(ending->host).second;
    if (const auto* ended = std::get_if<heard::HostEnded>(&event))
      return gone_.insert(ended->host).second;
    if (const auto* started = std::get_if<heard::Started>(&event))
      return !gone_.contains(host_of(started->rank));
    if (const auto* exited = std::get_if<heard::Exited>(&event)) return worker_ends(*exited);
    if (std::holds_alternative<heard::Interrupted>(event)) interrupted_ = true;
    return true;
  }

  bool worker_ends(const heard::Exited& exited) {
    const std::string& host = host_of(exited.rank);
    if (gone_.contains(host) || !ended_.insert(exited.rank).second) return false;
    if (!giving_up_.contains(host) && exited.status.ok()) good_ends_.insert(exited.rank);
    if (!giving_up_.contains(host) && !exited.status.ok() && !first_bad_code_)
      first_bad_code_ = exited.status.shell_code();
    return true;
  }

  void hear(const Event& event) {
    for (const Order& order : supervisor_.on(event, now_)) {
      RC_ASSERT(!finished_);
      std::visit([this](const auto& o) { carry_out(o); }, order);
    }
  }

  void carry_out(const order::Start& o) {
    RC_ASSERT(started_.insert(o.rank).second);
    later(kMoment, heard::Started{o.rank, 1});
    later(kMoment + fates_.workers[o.rank].life, heard::Exited{o.rank, fates_.workers[o.rank].end});
  }
  void carry_out(const order::Signal& o) {
    RC_ASSERT(started_.contains(o.rank));
    const WorkerFate& fate = fates_.workers[o.rank];
    if (o.signo == SIGKILL ? fate.heeds_kill : fate.heeds_term)
      later(kMoment, heard::Exited{o.rank, ExitStatus::killed(o.signo)});
  }
  void carry_out(const order::Announce& o) {
    RC_ASSERT(announced_.insert(o.departure.rank).second);
  }
  void carry_out(const order::Examine& o) {
    RC_ASSERT(!gone_.contains(o.host));
    if (fates_.hosts[o.host].heeds_close) later(kMoment, heard::Examined{o.host});
  }
  void carry_out(const order::Close& o) {
    RC_ASSERT(!gone_.contains(o.host));
    if (fates_.hosts[o.host].heeds_close) later(kMoment, heard::HostEnded{o.host, "closed"});
  }
  void carry_out(const order::Terminate& o) { later(1s, heard::HostEnded{o.host, "terminated"}); }
  void carry_out(const order::Finish&) {
    RC_ASSERT(gone_.size() == fates_.hosts.size());
    finished_ = true;
  }

  const Plan plan_;
  Fates fates_;
  TimePoint now_{};
  Supervisor supervisor_;
  std::priority_queue<Coming> coming_;
  long last_order_ = 0;
  bool finished_ = false, interrupted_ = false;
  std::set<std::string> gone_, giving_up_;
  std::set<int> started_, ended_, good_ends_, announced_;
  std::optional<int> first_bad_code_;
};

Plan some_plan() {
  std::vector<HostSpec> hosts;
  int room = 0;
  for (long i = 1 + one_of(4); i > 0; --i) {
    hosts.push_back({"h" + std::to_string(i), *rc::gen::inRange(1, 4)});
    room += hosts.back().slots;
  }
  return *make_plan(hosts, *rc::gen::inRange(1, room + 1), 0);
}

// Anything that an agent, a user or a bug may say, whether it makes sense or not.
Event some_event(const Plan& plan) {
  const int rank = *rc::gen::inRange(-1, plan.size() + 1);
  auto hosts = plan.hosts();
  hosts.push_back("stranger");
  const std::string host = *rc::gen::elementOf(hosts);
  switch (one_of(12)) {
    case 10:
      return heard::Arranged{};
    case 11:
      return heard::Unreached{{host, "out of reach", "", kExitUnreached}};
    case 0:
    case 1:
      return heard::HostReady{host};
    case 2:
      return heard::HostEnding{host, "ending"};
    case 3:
      return heard::HostEnded{host, "ended"};
    case 4:
    case 5:
      return heard::Started{rank, 1};
    case 6:
      return heard::NotStarted{rank, Error(Errc::not_found, "no program")};
    case 7:
      return heard::Exited{rank, ExitStatus::exited(0)};
    case 8:
      return heard::Exited{rank, ExitStatus::exited(*rc::gen::inRange(0, 256))};
    default:
      return heard::Interrupted{*rc::gen::element(SIGINT, SIGTERM, SIGHUP)};
  }
}

}  // namespace

TEST_CASE("every job ends, and its code tells how it went") {
  rc::prop("whatever happens, it ends in bounded time, and is a success only if all went well", [] {
    const Plan plan = some_plan();
    World world(plan, some_fates(plan));
    world.play();

    const Policy policy;
    const auto longest = policy.start_timeout + kLongestLife + policy.last_words + policy.grace +
                         policy.reports + policy.patience + 2s;
    RC_ASSERT(world.took() <= longest);
    RC_ASSERT((exit_code(world.outcome(), ExitCodePolicy::first) == 0) == world.success());
  });
  rc::prop("among workers alone, the first that fails gives the code", [] {
    const Plan plan = some_plan();
    Fates fates = some_fates(plan);
    fates.interrupts.clear();
    for (auto& [host, fate] : fates.hosts) fate = {.ready_after = 1s};
    World world(plan, fates);
    world.play();
    RC_ASSERT(exit_code(world.outcome(), ExitCodePolicy::first) ==
              world.first_bad_code().value_or(0));
  });
}

TEST_CASE("no sequence of events, however senseless, confuses a supervisor") {
  rc::prop("it finishes once, orders nothing after that, and makes no success out of failure", [] {
    const Plan plan = some_plan();
    TimePoint now{};
    Supervisor supervisor(plan, {}, now);
    int finishes = 0;
    const auto hear = [&](const Event& event) {
      const bool was_over = finishes > 0;
      for (const Order& order : supervisor.on(event, now)) {
        RC_ASSERT(!was_over);
        finishes += std::holds_alternative<order::Finish>(order);
      }
    };
    for (long i = one_of(60); i > 0; --i) {
      now += some_time(2s);
      hear(heard::Tick{});
      hear(some_event(plan));
    }
    hear(heard::Interrupted{SIGINT});
    for (int i = 0; i < 10; ++i) {
      if (supervisor.wake()) now = std::max(now, *supervisor.wake());
      hear(heard::Tick{});
    }
    for (const std::string& host : plan.hosts()) hear(heard::HostEnded{host, "terminated"});
    RC_ASSERT(finishes == 1);
    if (exit_code(supervisor.outcome(), ExitCodePolicy::first) == 0)
      for (const WorkerEnd& end : supervisor.outcome().workers)
        RC_ASSERT(end.status == ExitStatus::exited(0));
  });
}

}  // namespace corro::launcher
