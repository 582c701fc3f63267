#include "runtime/backend/native/job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/assert.h"
#include "runtime/domain/exchange.h"
#include "runtime/domain/waiting.h"

namespace corro::runtime {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) hash = (hash ^ (value >> 8 * i & 0xff)) * 0x100000001b3;
  return hash;
}

// The same on all members, and another for every time that these ranks open a group.
std::uint64_t group_id(const std::vector<int>& ranks, std::uint64_t times) {
  std::uint64_t hash = mix(0xcbf29ce484222325, times);
  for (const int rank : ranks) hash = mix(hash, static_cast<std::uint64_t>(rank));
  return hash;
}

int index_in(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

}  // namespace

Job::Job(const JobEnvironment& environment)
    : place_(environment.place),
      start_timeout_(environment.start_timeout),
      doorbell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

// Tensors that the caller has not given back stay where they are.
Job::~Job() {
  if (arenas_ && arenas_->mine()->used() > 0) new std::shared_ptr<Arenas>(arenas_);
}

Outcome<std::unique_ptr<Job>> Job::open(const JobEnvironment& environment) {
  std::unique_ptr<Job> job(new Job(environment));
  auto& status = job->status_;
  status = StatusWriter::open(environment.status.c_str());
  status.say("meeting the other workers");
  const auto met = job->meet(environment);
  status.say(met ? "has met the other workers, no collective yet"
                 : "could not meet the other workers");
  if (!met) return met.error();
  return job;
}

Outcome<Unit> Job::meet(const JobEnvironment& environment) {
  if (!doorbell_) return Failure(Error::from_errno("making an eventfd"));
  overrides_ = environment.algorithms;
  const auto deadline = Deadline::in(start_timeout_);
  if (place_.size > 1) {
    const Meeting& meeting = *environment.meeting;
    generation_ = meeting.generation;
    auto store =
        rendezvous::StoreClient::connect(meeting.store, meeting.key, meeting.generation, deadline);
    if (!store) return Failure(store.error());
    store_.emplace(std::move(*store));
    const Seat seat{{place_.rank, place_.host},
                    place_.size,
                    meeting.generation,
                    meeting.key,
                    meeting.ip,
                    meeting.ports};
    auto wiring =
        Wiring::meet(seat, environment.machine.empty() ? this_machine() : environment.machine,
                     *store_, deadline);
    if (!wiring) return wiring.error();
    wiring_ = std::move(*wiring);
  }
  std::vector<int> everyone(static_cast<std::size_t>(place_.size));
  std::iota(everyone.begin(), everyone.end(), 0);
  auto world = make_group(everyone, deadline);
  if (!world) return world.error();
  groups_[next_group_++].group = std::move(*world);
  // What the store told meanwhile would not make its socket ready again.
  read_news();
  return Unit{};
}

Outcome<std::unique_ptr<Group>> Job::make_group(const std::vector<int>& ranks, Deadline deadline) {
  const int self = index_in(ranks, place_.rank);
  CORRO_ASSERT(self < static_cast<int>(ranks.size()));
  const std::uint64_t id = group_id(ranks, opened_[ranks]++);

  Roster roster;
  for (const int rank : ranks)
    roster.push_back(wiring_ ? wiring_->peer(rank) : Peer{rank, place_.host});
  Topology topology = Topology::by(std::vector<int>(ranks.begin(), ranks.end()), self);
  std::unique_ptr<SharedDomain> domain;
  std::unique_ptr<Links> links = std::make_unique<ReadyLinks>();
  if (ranks.size() > 1) {
    auto shared = make_domain(ranks, id, topology, deadline);
    if (!shared) return shared.error();
    domain = std::move(*shared);
    if (!topology.one_machine()) {
      links = std::make_unique<TcpLinks>(*wiring_, id, ranks);
      if (auto connected = connect_ring(*links, *wiring_, roster, self, *store_, deadline);
          !connected)
        return connected.error();
    }
  }
  const NativeOptions options{generation_, id, costs_, overrides_};
  std::unique_ptr<Group> group = std::make_unique<NativeGroup>(
      std::move(roster), topology, std::move(links), std::move(domain), options);
  return group;
}

// Members that say that they are on one machine try to share memory; where that is denied they
// talk TCP.  Members of other machines have to know how it ended.
Outcome<std::unique_ptr<SharedDomain>> Job::make_domain(const std::vector<int>& ranks,
                                                        std::uint64_t id, Topology& topology,
                                                        Deadline deadline) {
  std::map<std::string, int> numbers;
  std::vector<int> same;
  for (const int rank : ranks)
    same.push_back(numbers
                       .try_emplace(wiring_->offers()[static_cast<std::size_t>(rank)].machine,
                                    static_cast<int>(numbers.size()))
                       .first->second);
  topology = Topology::by(same, topology.self);

  std::unique_ptr<SharedDomain> domain;
  if (topology.local().size() > 1) {
    std::vector<int> local;
    for (const int index : topology.local())
      local.push_back(ranks[static_cast<std::size_t>(index)]);
    if (auto shared = share_memory(local, id, deadline)) domain = std::move(*shared);
  }
  if (auto agreed = agree(ranks, id, domain != nullptr, topology, deadline); !agreed)
    return agreed.error();
  return domain;
}

// The first member of each machine tells all others whether its members share memory, which all
// of them know alike; a machine whose members do not counts as several.
Outcome<Unit> Job::agree(const std::vector<int>& ranks, std::uint64_t id, bool shares,
                         Topology& topology, Deadline deadline) {
  const auto key = [&](const std::vector<int>& machine) {
    return fmt::format("shares/{}/{:x}/{:x}/{}", generation_, wiring_->session(), id,
                       ranks[static_cast<std::size_t>(machine.front())]);
  };
  if (topology.local().size() > 1 && topology.local_index() == 0)
    if (auto told = store_->set(key(topology.local()), {shares ? std::uint8_t{1} : std::uint8_t{0}},
                                deadline);
        !told)
      return Failure(told.error());
  std::vector<int> same(ranks.size());
  for (const auto& machine : topology.machines) {
    bool together = false;
    if (&machine == &topology.local()) {
      together = shares;
    } else if (machine.size() > 1) {
      const auto told = store_->wait_for(key(machine), deadline);
      if (!told) return Failure(told.error()).during("learning which ranks share memory");
      together = told->size() == 1 && told->front() == 1;
    }
    for (const int member : machine)
      same[static_cast<std::size_t>(member)] = together ? machine.front() : member;
  }
  topology = Topology::by(same, topology.self);
  return Unit{};
}

// Hands this rank's memory to the others of its machine, and gets theirs.
Result<std::vector<Membership>> Job::exchange_memory(const std::vector<int>& local,
                                                     std::uint64_t id, DomainOffer offer,
                                                     Deadline deadline) {
  DomainSeat seat;
  for (const int rank : local) seat.members.push_back(wiring_->peer(rank));
  seat.index = index_in(local, place_.rank);
  seat.generation = generation_;
  seat.group = id;
  seat.key = wiring_->seat().key;
  const std::string where =
      fmt::format("domain/{}/{:x}/{:x}/{}", generation_, wiring_->session(), id, local.front());
  const AddressBook book{
      [&](const std::string& address) { return store_->set(where, bytes_of(address), deadline); },
      [&](Deadline until) -> Result<std::string> {
        auto address = store_->wait_for(where, until);
        if (!address) return address.error();
        return std::string(text_of(*address));
      }};
  return exchange(seat, std::move(offer), book, deadline);
}

Result<std::unique_ptr<SharedDomain>> Job::share_memory(const std::vector<int>& local,
                                                        std::uint64_t id, Deadline deadline) {
  // First: meanwhile a process holds three descriptors for each member.
  if (arena_ranks_.empty()) share_arenas(local, deadline);
  const int members = static_cast<int>(local.size());
  auto segment = Segment::create(layout_for(members, default_slot_bytes(members)), own_cpu_claim());
  auto doorbell = make_doorbell();
  DomainOffer offer;
  if (segment && doorbell) {
    offer.memory = segment->take_memory();
    offer.doorbell = std::move(*doorbell);
  } else {
    offer.unable = segment ? doorbell.error().text() : segment.error().text();
  }
  auto all = exchange_memory(local, id, std::move(offer), deadline);
  if (!all) return all.error();
  return SharedDomain::open(index_in(local, place_.rank), std::move(*segment), std::move(*all),
                            arenas_of(local));
}

// The world's domain comes first, and its members are those of every later one.  Without arenas
// corro_alloc gives ordinary memory.
void Job::share_arenas(const std::vector<int>& local, Deadline deadline) {
  constexpr std::uint64_t kArenas = ~std::uint64_t{0};  // no group has this number
  arena_ranks_ = local;
  auto arena = Arena::create(Arena::default_bytes(static_cast<int>(local.size())));
  DomainOffer offer;
  if (arena)
    offer.memory.reset(::fcntl((*arena)->memory(), F_DUPFD_CLOEXEC, 0));
  else
    offer.unable = arena.error().text();
  auto all = exchange_memory(local, kArenas, std::move(offer), deadline);
  if (!all) return;
  auto opened =
      Arenas::open(*arena, static_cast<std::size_t>(index_in(local, place_.rank)), std::move(*all));
  if (opened) arenas_ = std::move(*opened);
}

ArenaViews Job::arenas_of(const std::vector<int>& local) const {
  if (!arenas_) return {};
  ArenaViews views;
  views.mine = arenas_->mine();
  views.owner = arenas_;
  for (const int rank : local)
    views.members.push_back(
        arenas_->views()[static_cast<std::size_t>(index_in(arena_ranks_, rank))]);
  return views;
}

void* Job::allocate(std::size_t bytes) {
  if (arenas_) return arenas_->mine()->allocate(bytes);
  const std::size_t unit = bytes < kHugePage ? 64 : kHugePage;
  if (bytes > std::numeric_limits<std::ptrdiff_t>::max() - unit) return nullptr;
  const std::size_t whole = (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
  void* memory = std::aligned_alloc(unit, whole);
  if (memory) std::memset(memory, 0, whole);
  return memory;
}

void Job::release(void* memory) {
  if (!arenas_)
    std::free(memory);
  else if (memory)
    arenas_->mine()->release(memory);
}

// Alone with the store and the groups: a thread that drives stops for it.
class Job::Exclusive {
 public:
  Exclusive(Job& job, Lock& lock) : job_(job) {
    ++job_.exclusive_;
    if (job_.driving_) job_.wake_driver();
    job_.changed_.wait(lock, [&job] { return !job.driving_; });
    job_.driving_ = true;
  }
  ~Exclusive() {
    job_.driving_ = false;
    --job_.exclusive_;
    job_.changed_.notify_all();
  }
  Exclusive(const Exclusive&) = delete;

 private:
  Job& job_;
};

Outcome<Job::GroupNumber> Job::open_group(const std::vector<int>& ranks) {
  Lock lock(mutex_);
  const Exclusive alone(*this, lock);
  if (lost_) return Failure(*lost_);
  auto group = make_group(ranks, Deadline::in(start_timeout_));
  if (group) groups_[next_group_].group = std::move(*group);
  // What the store told meanwhile would not make its socket ready again.
  read_news();
  if (!group) return group.error();
  return next_group_++;
}

void Job::close_group(GroupNumber number) {
  Lock lock(mutex_);
  const auto idle = [&] {
    const auto found = groups_.find(number);
    return found == groups_.end() || !found->second.busy;
  };
  changed_.wait(lock, idle);
  const Exclusive alone(*this, lock);
  if (number != kWorld && idle()) groups_.erase(number);
}

std::optional<std::pair<int, int>> Job::self_and_size(GroupNumber number) const {
  const Lock lock(mutex_);
  const auto found = groups_.find(number);
  if (found == groups_.end()) return std::nullopt;
  return std::pair(found->second.group->self(), found->second.group->size());
}

Outcome<Unit> Job::run(GroupNumber number, const Operation& op, const Buffers& buffers,
                       Duration timeout) {
  ++waiting_;
  Lock lock(mutex_);
  --waiting_;
  const auto busy = [&] {
    const auto found = groups_.find(number);
    return found != groups_.end() && found->second.busy;
  };
  if (busy()) changed_.wait(lock, [&] { return !busy(); });
  const auto found = groups_.find(number);
  if (found == groups_.end()) return Failure(Errc::invalid_input, -1, "there is no such group");
  const Turn turn(*this, found->second);
  Group& group = *found->second.group;
  if (status_) tell_status(op.shape);
  try {
    carry_out(lock, group, op, buffers, timeout);
  } catch (...) {
    abandon(group);
    throw;
  }
  const bool failed = group.state() == Group::State::failed;
  if (status_) status_.finish(failed);
  if (failed) return *group.failure();
  return Unit{};
}

void Job::carry_out(Lock& lock, Group& group, const Operation& op, const Buffers& buffers,
                    Duration timeout) {
  const TimePoint now = Clock::now();
  group.start(op, buffers, now, timeout);
  if (driving_) wake_driver();
  while (group.state() == Group::State::working) {
    if (driving_ || exclusive_ > 0) {
      changed_.wait(lock, [&] {
        return (!driving_ && exclusive_ == 0) || group.state() != Group::State::working;
      });
    } else {
      const Driving driving(*this);
      drive(lock, group, now);
    }
  }
}

// There was no memory to go on: the other members are told, for as long as that may take.
void Job::abandon(Group& group) {
  group.fail(Failure(Errc::io, place_.rank, fmt::format("rank {} is out of memory", place_.rank)),
             Clock::now());
  while (group.state() == Group::State::working) {
    group.advance(Clock::now());
    ::sched_yield();
  }
}

void Job::tell_status(const Shape& shape) {
  if (said_ && *said_ == shape) return status_.begin_again();
  said_ = shape;
  status_.begin(shape.text());
}

// Until `wanted` has no operation under way.
void Job::drive(Lock& lock, const Group& wanted, TimePoint now) {
  for (;; now = Clock::now()) {
    if (spin(lock, wanted, now) || exclusive_ > 0) return;
    sleep(lock);
    if (wanted.state() != Group::State::working) return;
  }
}

// Looks for progress as long as it is worth it.  Whether the operation is over.
bool Job::spin(Lock& lock, const Group& wanted, TimePoint now) {
  constexpr int kLooksPerClock = 64;
  TimePoint began = now;
  for (int looks = 0, yields = 0;;) {
    const bool moved = advance_all(now);
    if (wanted.state() != Group::State::working) return true;
    if (moved) {
      looks = yields = 0;
      began = now;
      continue;
    }
    if (exclusive_ > 0) return false;
    if (waiting_.load(std::memory_order_relaxed) > 0) let_others(lock);
    const SpinPolicy policy = wanted.spin();
    if (policy.spin > 0ns) {
      pause_processor();
      if (++looks % kLooksPerClock != 0) continue;
      now = Clock::now();
      if (now - began < policy.spin) continue;
    }
    if (yields++ >= policy.yields) return false;
    // With several groups, threads that were notified may want the mutex.
    if (groups_.size() > 1)
      let_others(lock);
    else
      ::sched_yield();
    now = Clock::now();
  }
}

void Job::let_others(Lock& lock) {
  lock.unlock();
  ::sched_yield();
  lock.lock();
}

bool Job::advance_all(TimePoint now) {
  bool moved = false, ended = false;
  for (auto& [number, entry] : groups_) {
    if (entry.group->state() != Group::State::working) continue;
    moved |= entry.group->advance(now);
    ended |= entry.group->state() != Group::State::working;
  }
  if (ended) changed_.notify_all();
  return moved;
}

void Job::sleep(Lock& lock) {
  TimePoint now = Clock::now(), wake = now + 1h;
  const auto each_working = [this](auto&& fn) {
    for (auto& [number, entry] : groups_)
      if (entry.group->state() == Group::State::working) fn(*entry.group);
  };
  each_working([](Group& group) { group.sleep_begins(); });
  // What came before the others knew that we sleep.
  const bool moved = advance_all(now);
  std::vector<Interest> interests = {{doorbell_.get(), true, false}};
  if (store_) interests.push_back({store_->notice_fd(), true, false});
  each_working([&](Group& group) {
    group.add_interests(interests);
    wake = std::min(wake, group.wake(now));
  });
  Result<Unit> ready = Unit{};
  if (!moved) {
    lock.unlock();
    ready = wait_for_any(interests, Deadline{wake});
    lock.lock();
  }
  for (auto& [number, entry] : groups_) entry.group->sleep_ends();
  std::uint64_t rings = 0;
  (void)!::read(doorbell_.get(), &rings, sizeof rings);
  if (!ready && ready.error().code() != Errc::timed_out)
    for (auto& [number, entry] : groups_) entry.group->hear(ready.error());
  if (!moved) read_news();
}

void Job::read_news() {
  if (!store_) return;
  const auto news = store_->take_departures();
  for (auto& [number, entry] : groups_) {
    if (!news) entry.group->hear(news.error());
    if (news)
      for (const auto& departure : *news) entry.group->hear(departure);
  }
  if (news) return;
  lost_ = news.error();
  store_.reset();
}

void Job::wake_driver() {
  const std::uint64_t one = 1;
  (void)!::write(doorbell_.get(), &one, sizeof one);
}

}  // namespace corro::runtime
