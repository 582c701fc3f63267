#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "launcher/doctor/consultation.h"
#include "launcher/fleet/fleet.h"
#include "launcher/job/consult.h"
#include "launcher/network/door.h"

namespace corro::launcher {

// Visits all hosts of a job: asks each what it has, lets those that answer probe each other, and
// closes them.  A host that fails keeps its barrier, and the others go on.
//
// Sans-IO but for the sessions, as Fleet is: the owner calls tick() when the time of wake() has
// come, and asks for both again after each event of a session.
class HostSurvey : private FleetClient {
 public:
  using WallClock = std::function<std::chrono::microseconds()>;  // since 1970

  // What the survey is made with, besides the job.
  struct Setup {
    Look look = Look::all;
    std::set<std::string> here;                       // hosts that are this machine
    Key key;                                          // for the probes
    std::optional<std::vector<Door>> launcher_doors;  // none: nobody probes
    Fleet::Now now;
    WallClock wall_clock;
    Fleet::Open open;
    WatchConsult watch;
  };

  HostSurvey(const JobSpec&, Setup);

  void begin();
  void tick();
  TimePoint wake() const;
  bool finished() const { return step_ == Step::finished; }

  // Of a survey that has finished: hosts and routes, the rest is empty.
  doctor::Consultation take_result();

  // What hosts are asked to inspect.
  const agent::Inspect& question() const { return question_; }

 private:
  struct Visit {
    const HostSpec* host;
    doctor::HostReport report{};
    std::chrono::microseconds asked{};
    std::optional<std::vector<Door>> doors{};
    std::optional<TimePoint> deadline{};  // for its answers

    bool is_done() const { return report.barrier || is_well(); }
    bool is_well() const { return !report.barrier && report.seen && doors; }
  };

  void on_reached(const std::string& host, const agent::Reached&) override;
  void on_ready(const std::string& host, const agent::Ready&) override;
  void on_surveyed(const std::string& host, const agent::Facts&) override;
  void on_probed(const std::string& host, const agent::Knocked&) override;
  void on_message(const std::string& host, const agent::Up&, std::uint64_t seq) override;
  void on_not_started(const std::string& host, const Error&) override;
  void on_unreachable(const std::string& host, const agent::Unreached&) override;
  void on_given_up(const std::string& host, Reason, const std::string& why) override;
  void on_gone(const std::string& host, const std::string& why) override;

  Visit& visit(const std::string& host);
  void fail(Visit&, BarrierKind, const std::string& why, const std::string& fix = {});
  void go_on();
  bool has_answered(const Visit&) const;
  void tell() const;
  void probe();
  std::vector<Doorway> doorways_for(const Visit&) const;
  const std::vector<Door>& doors_of(const std::string& host) const;
  void close();
  void on_step_deadline();

  enum class Step { asking, probing, closing, ending, finished };

  const JobSpec& spec_;
  const Setup setup_;
  const agent::Inspect question_;
  std::deque<Visit> visits_;  // as the job has the hosts; they stay where they are
  std::vector<doctor::Route> routes_;
  Fleet fleet_;
  Step step_ = Step::asking;
  TimePoint step_deadline_ = TimePoint::max();
};

}  // namespace corro::launcher
