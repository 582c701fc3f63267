#pragma once

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/supervise/supervisor.h"

namespace corro::launcher {

using Transcript = std::vector<std::string>;

// A supervisor whose hosts and workers do what a test says, and whose time passes by hand.  What it
// orders is written down in words:
//
//   start 2 | SIGTERM 2 | tell: rank 2 on host b exited with code 7 | examine b | close b |
//   terminate b |
//   finish
class Stage {
 public:
  Stage(std::string_view hosts, int np, Policy policy = {});

  // A host or a worker to whom things happen.
  class Host {
   public:
    Host(Stage& stage, std::string name) : stage_(stage), name_(std::move(name)) {}
    void is_ready() { stage_.hear(heard::HostReady{name_}); }
    void is_not_reached(std::string why, int code) {
      stage_.hear(heard::Unreached{{name_, std::move(why), "mend it", code}});
    }
    void gives_up(std::string why) { stage_.hear(heard::HostEnding{name_, std::move(why)}); }
    void vanishes(std::string why = "its agent was killed by SIGKILL") {
      stage_.hear(heard::HostEnded{name_, std::move(why)});
    }
    void has_seen_its_workers() { stage_.hear(heard::Examined{name_}); }
    void closes() { vanishes("it closed the connection"); }

   private:
    Stage& stage_;
    std::string name_;
  };
  class Worker {
   public:
    Worker(Stage& stage, int rank) : stage_(stage), rank_(rank) {}
    void starts() { stage_.hear(heard::Started{rank_, 1000 + rank_}); }
    void cannot_start(Error why) { stage_.hear(heard::NotStarted{rank_, std::move(why)}); }
    void exits(int code) { stage_.hear(heard::Exited{rank_, ExitStatus::exited(code)}); }
    void dies_of(int signo) { stage_.hear(heard::Exited{rank_, ExitStatus::killed(signo)}); }

   private:
    Stage& stage_;
    int rank_;
  };
  Host host(std::string name) { return Host(*this, std::move(name)); }
  Worker worker(int rank) { return Worker(*this, rank); }

  // Whether hosts answer at once when they are asked what their workers do; then nobody needs to
  // look at that.
  bool hosts_see_at_once = true;

  void is_interrupted(int signo) { hear(heard::Interrupted{signo}); }
  void time_passes(Duration);
  void is_held_for(Duration);
  void hear(const Event&);

  // All hosts ready, all workers running, nothing of it left to look at.
  void rises();
  void all_hosts_close();

  // What was ordered since somebody looked last.
  Transcript ordered() { return std::exchange(ordered_, {}); }
  const Transcript& dropped() const { return supervisor_.dropped(); }  // by the last event
  Transcript told();  // of that, what the other workers are told

  JobPhase phase() const { return supervisor_.phase(); }
  const Outcome& outcome() const { return supervisor_.outcome(); }
  int code() const { return exit_code(outcome(), ExitCodePolicy::first); }
  const Plan& plan() const { return plan_; }
  Duration elapsed() const { return now_ - began_; }

 private:
  const Plan plan_;
  const TimePoint began_{std::chrono::hours(1)};
  TimePoint now_ = began_;
  Supervisor supervisor_;
  Transcript ordered_;
};

// "SIGTERM 0", "SIGTERM 1", … for these ranks.
Transcript sent(int signo, const std::vector<int>& ranks);

}  // namespace corro::launcher
