#pragma once

#include <array>
#include <string_view>

#include "base/transition.h"

namespace corro::launcher {

// The life of a worker, as the launcher knows it.
//
//   planned ─start→ starting ─started→ running ─exited→ exited
//      │               │ failed → exited  │
//      │               └──────────────────┴── host_ending → ending ─┐
//      └───────────────┴──────────────────┴──────── host_lost ──────┴→ lost
//
// `ending`: its host has given up and ends it by itself.  It has its grace there, but what becomes
// of it counts no more.
enum class WorkerPhase { planned, starting, running, exited, ending, lost };
enum class WorkerEvent { start, started, failed, exited, host_ending, host_lost };

// The life of a job.
//
//   gathering ─all_ready→ running ─failure→ last_words ─time_up→ terminating ─time_up→ killing
//       │                    │                  │                    │               │
//       │                    └──interrupt───────┴──→ terminating     └─interrupt→ killing
//       │                    (all_settled, from each of them)                        │
//       └─failure, interrupt→ closing ←─────────────────────────────── time_up ─────┘
//                                         └─all_closed→ finished
//
// `gathering`: sessions are being opened.  `last_words`: everybody has been told of the failure
// and may say what it was doing.  `closing`: no worker runs; the hosts clean up.
enum class JobPhase { gathering, running, last_words, terminating, killing, closing, finished };
enum class JobEvent { all_ready, failure, interrupt, time_up, all_settled, all_closed };

constexpr std::string_view name_of(WorkerPhase phase) {
  return std::to_array<std::string_view>({"planned", "starting", "running", "exited", "ending",
                                          "lost"})[static_cast<std::size_t>(phase)];
}
constexpr std::string_view name_of(WorkerEvent event) {
  return std::to_array<std::string_view>({"start", "started", "failed", "exited", "host_ending",
                                          "host_lost"})[static_cast<std::size_t>(event)];
}
constexpr std::string_view name_of(JobPhase phase) {
  return std::to_array<std::string_view>({"gathering", "running", "last_words", "terminating",
                                          "killing", "closing",
                                          "finished"})[static_cast<std::size_t>(phase)];
}
constexpr std::string_view name_of(JobEvent event) {
  return std::to_array<std::string_view>({"all_ready", "failure", "interrupt", "time_up",
                                          "all_settled",
                                          "all_closed"})[static_cast<std::size_t>(event)];
}

inline constexpr auto kWorkerLife = [] {
  using P = WorkerPhase;
  using E = WorkerEvent;
  return std::to_array<Edge<P, E>>({
      {P::planned, E::start, P::starting},
      {P::planned, E::host_ending, P::lost},
      {P::planned, E::host_lost, P::lost},
      {P::starting, E::started, P::running},
      {P::starting, E::failed, P::exited},
      {P::starting, E::host_ending, P::ending},
      {P::starting, E::host_lost, P::lost},
      {P::running, E::exited, P::exited},
      {P::running, E::host_ending, P::ending},
      {P::running, E::host_lost, P::lost},
      {P::ending, E::host_lost, P::lost},
  });
}();

inline constexpr auto kJobLife = [] {
  using P = JobPhase;
  using E = JobEvent;
  return std::to_array<Edge<P, E>>({
      {P::gathering, E::all_ready, P::running},
      {P::gathering, E::failure, P::closing},
      {P::gathering, E::interrupt, P::closing},
      {P::running, E::failure, P::last_words},
      {P::running, E::interrupt, P::terminating},
      {P::running, E::all_settled, P::closing},
      {P::last_words, E::interrupt, P::terminating},
      {P::last_words, E::time_up, P::terminating},
      {P::last_words, E::all_settled, P::closing},
      {P::terminating, E::interrupt, P::killing},
      {P::terminating, E::time_up, P::killing},
      {P::terminating, E::all_settled, P::closing},
      {P::killing, E::time_up, P::closing},
      {P::killing, E::all_settled, P::closing},
      {P::closing, E::all_closed, P::finished},
  });
}();

static_assert(next(kWorkerLife, WorkerPhase::running, WorkerEvent::exited) == WorkerPhase::exited);
static_assert(!next(kWorkerLife, WorkerPhase::exited, WorkerEvent::started));  // nobody comes back
static_assert(!next(kJobLife, JobPhase::finished, JobEvent::failure));

}  // namespace corro::launcher
