#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/status_page.h"
#include "base/time.h"
#include "rendezvous/store_client.h"
#include "runtime/backend/native/native_group.h"
#include "runtime/domain/arena.h"
#include "runtime/domain/exchange.h"
#include "runtime/wiring/environment.h"
#include "runtime/wiring/wiring.h"

namespace corro::runtime {

// One rank's membership in its job: the store, the connections, and the groups.
//
// A thread that waits for an operation drives all groups; there is no other thread.  If several
// wait, one drives and the others sleep until theirs is done or they have to take over.  While an
// operation is under way the driver watches links, doorbells and store together, so news of a
// death ends it at once.
//
// Any thread may call anything.  Closing it says nothing to other ranks.
class Job {
 public:
  static Outcome<std::unique_ptr<Job>> open(const JobEnvironment&);
  ~Job();

  const Place& place() const { return place_; }

  using GroupNumber = std::size_t;
  static constexpr GroupNumber kWorld = 0;

  // A group of some ranks of the job, in this order.  Every one of them calls this, in the same
  // order as its other calls on groups of the same ranks; it waits until all have.  Meanwhile no
  // operation of this rank makes progress.
  Outcome<GroupNumber> open_group(const std::vector<int>& ranks);
  void close_group(GroupNumber);
  std::optional<std::pair<int, int>> self_and_size(GroupNumber) const;

  // Memory that the other ranks of this machine see, so that tensors in it are reduced where they
  // are.  It stays until it is given back, also when the job is gone.  Null: there is no more.
  void* allocate(std::size_t bytes);
  void release(void*);

  // The operation is valid (op.h) and its buffers stay in place until this returns.
  Outcome<Unit> run(GroupNumber, const Operation&, const Buffers&, Duration timeout);

 private:
  struct Entry {
    std::unique_ptr<Group> group;
    bool busy = false;  // a thread is in an operation of it
  };
  using Lock = std::unique_lock<std::mutex>;
  class Exclusive;

  // A thread has the turn of a group, or drives all of them, as long as one of these lives.
  struct Turn {
    Job& job;
    Entry& entry;
    Turn(Job& j, Entry& e) : job(j), entry(e) { entry.busy = true; }
    ~Turn() {
      entry.busy = false;
      job.changed_.notify_all();
    }
    Turn(const Turn&) = delete;
  };
  struct Driving {
    Job& job;
    explicit Driving(Job& j) : job(j) { job.driving_ = true; }
    ~Driving() {
      job.driving_ = false;
      job.changed_.notify_all();
    }
    Driving(const Driving&) = delete;
  };

  explicit Job(const JobEnvironment&);

  Outcome<Unit> meet(const JobEnvironment&);
  Outcome<std::unique_ptr<Group>> make_group(const std::vector<int>& ranks, Deadline);
  Outcome<std::unique_ptr<SharedDomain>> make_domain(const std::vector<int>& ranks,
                                                     std::uint64_t id, Topology&, Deadline);
  Result<std::vector<Membership>> exchange_memory(const std::vector<int>& local, std::uint64_t id,
                                                  DomainOffer, Deadline);
  void share_arenas(const std::vector<int>& local, Deadline);
  ArenaViews arenas_of(const std::vector<int>& local) const;
  Result<std::unique_ptr<SharedDomain>> share_memory(const std::vector<int>& local,
                                                     std::uint64_t id, Deadline);
  Outcome<Unit> agree(const std::vector<int>& ranks, std::uint64_t id, bool shares, Topology&,
                      Deadline);
  void drive(Lock&, const Group& wanted, TimePoint now);
  bool spin(Lock&, const Group& wanted, TimePoint now);
  bool advance_all(TimePoint now);
  void sleep(Lock&);
  void read_news();
  void let_others(Lock&);
  void wake_driver();
  void carry_out(Lock&, Group&, const Operation&, const Buffers&, Duration timeout);
  void abandon(Group&);
  void tell_status(const Shape&);

  Place place_;
  Duration start_timeout_;
  std::optional<rendezvous::StoreClient> store_;
  std::optional<Error> lost_;  // why there is no store any more
  std::unique_ptr<Wiring> wiring_;
  std::uint64_t generation_ = 0;
  std::shared_ptr<Arenas> arenas_;
  std::vector<int> arena_ranks_;  // whose they are
  Costs costs_;
  Overrides overrides_;

  mutable std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::map<GroupNumber, Entry> groups_;
  GroupNumber next_group_ = 0;
  std::map<std::vector<int>, std::uint64_t> opened_;  // how often a group of these ranks was
  bool driving_ = false;                              // a thread is in drive()
  int exclusive_ = 0;                                 // threads that wait to be alone
  std::atomic<int> waiting_ = 0;                      // threads that want the mutex meanwhile
  Fd doorbell_;                                       // wakes the driver
  StatusWriter status_;
  std::optional<Shape> said_;  // what the status page says
};

}  // namespace corro::runtime
