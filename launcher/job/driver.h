#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/loop.h"
#include "launcher/fleet/fleet.h"
#include "launcher/job/arrangement.h"
#include "launcher/job/feeder.h"
#include "launcher/job/job.h"
#include "launcher/job/placing.h"
#include "launcher/job/progress.h"
#include "launcher/job/signals.h"
#include "launcher/job/start_life.h"
#include "launcher/job/wayfinding.h"
#include "launcher/output/desk.h"
#include "launcher/plan/plan.h"
#include "launcher/supervise/supervisor.h"
#include "rendezvous/store_server.h"

namespace corro::launcher {

// Carries what the fleet says to the supervisor, and what it decides to fleet and store.
// Decides nothing itself.
//
// Belongs to the loop; owned by run_job for the length of one job.
class Driver : private FleetClient {
 public:
  Driver(Loop&, std::unique_ptr<Signals>, OutputDesk&, const JobSpec&, Plan, Policy, Wording);

  Outcome run();

 private:
  const HostSpec& named(const std::string& host) const;
  Result<std::unique_ptr<Session>> open_session(const std::string& host, Session::Events);

  void on_reached(const std::string& host, const agent::Reached&) override;
  void on_ready(const std::string& host, const agent::Ready&) override;
  void on_surveyed(const std::string& host, const agent::Facts&) override;
  void on_probed(const std::string& host, const agent::Knocked&) override;
  void on_message(const std::string& host, const agent::Up&, std::uint64_t seq) override;
  void on_not_started(const std::string& host, const Error&) override;
  void on_unreachable(const std::string& host, const agent::Unreached&) override;
  void on_given_up(const std::string& host, Reason, const std::string& why) override;
  void on_gone(const std::string& host, const std::string& why) override;

  void on_host(const std::string& host, const agent::Started&);
  void on_host(const std::string& host, const agent::Failed&);
  void on_host(const std::string& host, const agent::Exited&);
  void on_host(const std::string& host, const agent::Taken&);
  void on_host(const std::string& host, const agent::Finding&);
  void on_host(const std::string& host, const agent::Examined&);
  void on_output(const std::string& host, const agent::Output&, std::uint64_t seq);

  // The start of a job: on this event, in this phase, this step is run.
  struct StartStep {
    StartPhase from;
    StartEvent on;
    StartPhase to;
    void (Driver::*run)();
  };
  static const StartStep kStart[];
  void advance(StartEvent);
  void open_hosts();
  void probe_routes();
  void probe_again();
  void arrange();
  void begin();
  Result<Routes, heard::Unfit> find_routes() const;
  Result<Unit, heard::Unfit> open_store(const Door& at);
  Result<std::vector<Place>, heard::Unfit> place();

  void on_signal(int signo);
  void stop_and_go_on();

  void hear(const Event&);
  void carry_out(const order::Start&);
  void carry_out(const order::Signal&);
  void carry_out(const order::Announce&);
  void carry_out(const order::Examine&);
  void carry_out(const order::Close&);
  void carry_out(const order::Terminate&);
  void carry_out(const order::Finish&);

  void set_alarm();
  void note_progress();
  void tell(const News&);
  bool runs_on(std::uint32_t worker, const std::string& host) const;
  std::string stderr_file_of(std::uint32_t worker) const;
  void send_to(int rank, const agent::Down&);

  Loop& loop_;
  OutputDesk& desk_;
  const JobSpec& spec_;
  const Key key_ = Key::random();
  const Plan plan_;
  const Policy policy_;
  const Wording wording_;
  Supervisor supervisor_;

  const std::set<std::string> here_;  // hosts that are this machine
  Spawner spawner_;                   // of sessions
  Fleet fleet_;
  FactsByHost facts_;                                  // by host, once it was surveyed
  std::map<std::string, std::size_t> unacknowledged_;  // by host: bytes of output
  std::map<int, Doing> doings_;                        // by rank, once the job has failed
  Wayfinding wayfinding_;
  StartPhase start_ = StartPhase::planned;
  std::unique_ptr<rendezvous::StoreServer> store_;  // once routes are known
  std::optional<Arrangement> arrangement_;          // once the start is over
  Feeder feeder_;

  // Given back with this driver: when no process is left to be ended, a signal may end us, who
  // may be waiting for a reader of the last output.
  std::unique_ptr<Signals> signals_;
  Loop::Watch signal_watch_;
  Loop::Timer alarm_, progress_timer_;
  Progress progress_;
  bool slow_ = false;  // it has not risen within a moment, so the user is told how far it is
  const TimePoint began_;
  news::RoseUp rise_;
};

}  // namespace corro::launcher
