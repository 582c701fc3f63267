#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "base/time.h"
#include "launcher/plan/plan.h"
#include "launcher/supervise/life.h"
#include "launcher/supervise/outcome.h"
#include "rendezvous/messages.h"

namespace corro::launcher {

// What the supervisor hears.
namespace heard {
struct HostReady {
  std::string host;
};
struct Arranged {};  // it is known what each worker gets, and where they meet
struct Unreached {
  Unreachable host;
};  // it cannot be had, or is lost
struct Unfit {
  std::string host, why;
  int exit_code = kExitUnfit;
};  // it lacks what the job needs, which is not to start
struct HostEnding {
  std::string host, why;
};  // its agent has given up, and ends its workers by itself
struct HostEnded {
  std::string host, why;
};  // nothing is left there
struct Started {
  int rank, pid;
};
struct NotStarted {
  int rank;
  Error why;
};
struct Exited {
  int rank;
  ExitStatus status;
  std::string detail{};  // what more is known of why
  Usage used{};
};
struct Examined {
  std::string host;
};  // what its workers do has been told
struct Interrupted {
  int signo;
};
struct Spoken {
  int signo;
};  // meant for the workers, whatever it means to them
struct Held {
  Duration time;
};  // all stood still for so long, which counts for nothing
struct Tick {};
}  // namespace heard

using Event = std::variant<heard::HostReady, heard::Arranged, heard::Unreached, heard::Unfit,
                           heard::HostEnding, heard::HostEnded, heard::Started, heard::NotStarted,
                           heard::Exited, heard::Examined, heard::Interrupted, heard::Spoken,
                           heard::Held, heard::Tick>;

// What it wants done.
namespace order {
struct Start {
  int rank;
  bool operator==(const Start&) const = default;
};
struct Signal {
  int rank, signo;
  bool operator==(const Signal&) const = default;
};
struct Announce {
  rendezvous::Departure departure;
  bool operator==(const Announce&) const = default;
};
// To see what the workers do, before they are ended.
struct Examine {
  std::string host;
  bool operator==(const Examine&) const = default;
};
struct Close {
  std::string host;
  bool operator==(const Close&) const = default;
};
struct Terminate {
  std::string host;
  bool operator==(const Terminate&) const = default;
};
struct Finish {
  bool operator==(const Finish&) const = default;
};
}  // namespace order

using Order = std::variant<order::Start, order::Signal, order::Announce, order::Examine,
                           order::Close, order::Terminate, order::Finish>;
using Orders = std::vector<Order>;

struct Policy {
  Duration start_timeout = std::chrono::seconds(30);
  // For the other hosts to say whether they can be had, when one cannot: the user mends them all.
  Duration roll_call = std::chrono::seconds(2);
  // For survivors to learn who died and to say so, before they are asked to end.
  Duration last_words = std::chrono::milliseconds(500);
  // For hosts to say what their workers do, at the most.
  Duration evidence = std::chrono::seconds(2);
  // TERM first: Python's handlers write checkpoints.  Five seconds is what Horovod gives.
  Duration grace = std::chrono::seconds(5);
  // For hosts to report what they were told to kill.  One that stands in the kernel never comes.
  Duration reports = std::chrono::milliseconds(500);
  // For a host to clean up.
  Duration patience = std::chrono::seconds(2);
};

// Decides what happens in a job: all workers are started when all hosts are ready; the first
// failure ends the job.
//
// Sans-IO: events and time in, orders out.
class Supervisor {
 public:
  Supervisor(Plan, Policy, TimePoint now);

  Orders on(const Event&, TimePoint now);
  std::optional<TimePoint> wake() const { return wake_; }

  // What the last event would have moved, had the tables an edge for it: a line each, with phase
  // and event, for the log.
  const std::vector<std::string>& dropped() const { return dropped_; }

  JobPhase phase() const { return phase_; }
  const Outcome& outcome() const { return outcome_; }

 private:
  struct Worker {
    WorkerPhase phase = WorkerPhase::planned;
    bool settled() const { return phase == WorkerPhase::exited || phase == WorkerPhase::lost; }
    bool living() const { return phase == WorkerPhase::starting || phase == WorkerPhase::running; }
  };

  void hear(const heard::HostReady&);
  void hear(const heard::Arranged&);
  void hear(const heard::Unreached&);
  void hear(const heard::Unfit&);
  void hear(const heard::HostEnding&);
  void hear(const heard::HostEnded&);
  void hear(const heard::Started&);
  void hear(const heard::NotStarted&);
  void hear(const heard::Exited&);
  void hear(const heard::Examined&);
  void hear(const heard::Interrupted&);
  void hear(const heard::Spoken&);
  void hear(const heard::Held&);
  void hear(const heard::Tick&);

  bool move_worker(int rank, WorkerEvent);
  void move_job(JobEvent);
  void enter(JobPhase);
  void fail(Failure);
  void begin_if_all_ready();
  void give_up();
  bool is_unreachable(const std::string& host) const;
  void lose_workers(const std::string& host, const std::string& why, WorkerEvent);
  void announce(int rank, const std::string& cause, rendezvous::Departure::Manner);
  void signal_living(int signo);
  void settle_if_all();

  const Plan plan_;
  const Policy policy_;
  const TimePoint began_;

  JobPhase phase_ = JobPhase::gathering;
  std::vector<Worker> workers_;
  std::set<std::string> unready_, open_;  // hosts
  bool arranged_ = false;
  std::set<std::string> unexamined_;  // the same
  TimePoint failed_;
  std::optional<TimePoint> wake_;
  Outcome outcome_;

  TimePoint now_;  // of the event that is being heard
  Orders orders_;  // its answer
  std::vector<std::string> dropped_;
};

}  // namespace corro::launcher
