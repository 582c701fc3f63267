#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "runtime/group/running.h"
#include "runtime/group/verdict.h"
#include "runtime/transport/endpoint.h"

namespace corro::runtime {

// The ranks of a group by index.
using Roster = std::vector<Peer>;

// One rank's part in the operations of its group, one at a time, and its judgement when they fail.
//
//   idle ─start→ working ─last step→ idle
//                   │  └─ a link broke → doubting ─┐
//                   └────────── verdict ───────────┴→ parting ─neighbours told→ failed
//
// A rank that fails passes the cause on to its neighbours in the same words.  A failed member
// stays failed: every later operation ends at once with the same failure.
//
// Sans-IO: told the time and the news, it moves its links as far as they go.  Belongs to one
// thread at a time.
class Member {
 public:
  enum class Phase { idle, working, doubting, parting, failed };

  // The group's ranks, and this rank's index among them.
  Member(Roster, int self, std::unique_ptr<Links>);
  Member(const Member&) = delete;

  // The operation is driven until the member is idle again or has failed.
  void start(Running&, TimePoint now, Duration timeout);

  // Ends what is under way with this failure, and tells the neighbours.
  void fail(const Failure&, TimePoint now);

  Phase advance(TimePoint now);

  void hear(const rendezvous::Departure& departure) { verdict_.hear(departure); }
  void hear(const Error& error) { verdict_.hear(error); }

  Phase phase() const { return phase_; }
  const std::optional<Failure>& failure() const { return failure_; }
  const Roster& roster() const { return roster_; }
  int self() const { return self_; }
  Links& links() { return *links_; }

  // When to be called again at the latest, and what to wait for before.
  TimePoint wake(TimePoint now) const;
  void add_interests(std::vector<Interest>&) const;

 private:
  const Peer& peer(int index) const { return roster_[static_cast<std::size_t>(index)]; }
  void judge(TimePoint now);
  void work(TimePoint now);
  void part(TimePoint now);
  std::optional<Failure> told_by_neighbours();
  std::optional<Failure> told_before_the_end();
  std::optional<Failure> told_in_memory();
  std::optional<Failure> early_mismatch();
  std::optional<Failure> exited_in_memory();
  Failure too_late() const;

  Roster roster_;
  int self_;
  std::unique_ptr<Links> links_;

  Phase phase_ = Phase::idle;
  TimePoint until_;  // the end of this phase
  Duration timeout_{};
  Running* running_ = nullptr;
  Verdict verdict_;
  std::optional<Failure> failure_;
};

}  // namespace corro::runtime
