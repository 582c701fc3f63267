#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "rendezvous/messages.h"
#include "runtime/collective/execution.h"
#include "runtime/pattern/schedule.h"
#include "runtime/transport/endpoint.h"

namespace corro::runtime {

// One rank's part in the operations of its group, and its judgement when they fail.
//
//   idle ─start→ working ─last step→ idle
//                   │  └─ a link broke → doubting ─┐
//                   └────────── verdict ───────────┴→ parting ─neighbours told→ failed
//
// A broken link is only a symptom: its peer may have died, or have left, or have given up because
// of a third.  So the rank doubts for a moment, until the store or a neighbour names the cause,
// and then passes that on in the same words.  A failed member stays failed: every later operation
// ends at once with the same failure.
//
// Sans-IO: told the time and the news, it moves its links as far as they go.  Belongs to one
// thread at a time.
class Member {
 public:
  enum class Phase { idle, working, doubting, parting, failed };
  using ScheduleFor =
      std::function<std::unique_ptr<Schedule>(const Operation&, int rank, int size)>;

  Member(Peer self, int size, std::uint64_t generation, Links, ScheduleFor);
  Member(const Member&) = delete;

  // The data is the caller's and is the member's to change until it is idle or has failed.
  void start(const Operation&, MutByteView data, TimePoint now, Duration timeout);

  Phase advance(TimePoint now);

  // What the store says.  A death ends whatever is under way; who left after exit code 0 is only
  // remembered, since what it sent before may still be coming in.
  void hear(const rendezvous::Departure&);
  // The store itself, or any means of waiting, is lost.
  void hear(const Error&);

  const std::optional<Failure>& failure() const { return failure_; }

  // When to be called again at the latest, and what to wait for before.
  TimePoint wake() const { return until_; }
  std::vector<Interest> interests() const;

 private:
  void work(TimePoint now);
  void doubt(TimePoint now);
  void part(TimePoint now);
  void fail(const Failure&, TimePoint now);
  void judge(TimePoint now);
  std::optional<Failure> told_by_neighbours();
  Failure too_late() const;

  Peer self_;
  int size_;
  std::uint64_t generation_;
  Links links_;
  ScheduleFor schedule_for_;
  Bytes scratch_;

  Phase phase_ = Phase::idle;
  TimePoint until_;  // the end of this phase
  Header header_;    // of the operation under way
  Duration timeout_{};
  std::unique_ptr<Schedule> schedule_;
  std::optional<Execution> execution_;

  std::optional<Failure> verdict_;     // the store's
  std::optional<TimePoint> believed_;  // from when on, if no neighbour knows better
  std::map<int, Failure> departed_;    // who left in good order, should that matter
  std::optional<Failure> symptom_;     // the broken link that is in doubt
  std::optional<Failure> failure_;
};

}  // namespace corro::runtime
