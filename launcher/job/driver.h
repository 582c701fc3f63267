#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/loop.h"
#include "launcher/job/feeder.h"
#include "launcher/job/job.h"
#include "launcher/job/placing.h"
#include "launcher/job/progress.h"
#include "launcher/job/signals.h"
#include "launcher/job/wayfinding.h"
#include "launcher/output/desk.h"
#include "launcher/plan/plan.h"
#include "launcher/plan/recipe.h"
#include "launcher/session/session.h"
#include "launcher/supervise/supervisor.h"
#include "rendezvous/store_server.h"

namespace corro::launcher {

// Carries what the sessions say to the supervisor, and what it decides to sessions and store.
// Decides nothing itself.
//
// Belongs to the loop; owned by run_job for the length of one job.
class Driver {
 public:
  Driver(Loop&, std::unique_ptr<Signals>, OutputDesk&, const JobSpec&, Setting, Plan, Policy,
         Wording);

  Outcome run();

 private:
  void open_sessions();
  void open_next();
  void open_session(const std::string& host);
  const HostSpec& named(const std::string& host) const;
  void on_session_end(const std::string& host, const std::string& why);
  void on_message(const std::string& host, const agent::Up&, std::uint64_t seq);
  void on_host(const std::string& host, const agent::Ready&);
  void on_host(const std::string& host, const agent::Facts&);
  void on_host(const std::string& host, const agent::Started&);
  void on_host(const std::string& host, const agent::Failed&);
  void on_host(const std::string& host, const agent::Exited&);
  void on_host(const std::string& host, const agent::Ending&);
  void on_host(const std::string& host, const agent::Taken&);
  void on_host(const std::string& host, const agent::Finding&);
  void on_host(const std::string& host, const agent::Examined&);
  void on_host(const std::string&, const agent::Inspected&) {}  // a job does not ask
  void on_host(const std::string& host, const agent::Knocked&);
  void on_host(const std::string&, const agent::Alive&) {}  // that it came is what matters
  void on_host(const std::string& host, const agent::Reached&);
  void on_host(const std::string& host, const agent::Unreached&);
  void on_output(const std::string& host, const agent::Output&, std::uint64_t seq);

  void knock();
  void arrange();
  std::optional<heard::Unfit> find_ways();
  std::optional<heard::Unfit> open_store();
  std::optional<heard::Unfit> place();
  void on_signal(int signo);
  void stop_and_go_on();
  void send_all(const agent::Down&);

  void hear(const Event&);
  void carry_out(const order::Start&);
  void carry_out(const order::Signal&);
  void carry_out(const order::Announce&);
  void carry_out(const order::Examine&);
  void carry_out(const order::Close&);
  void carry_out(const order::Terminate&);
  void carry_out(const order::Finish&);

  void set_alarm();
  void renew_leases();
  void look_for_silence(bool again);
  void note_progress();
  void tell(const News&);
  bool runs_on(std::uint32_t worker, const std::string& host) const;
  std::string stderr_file_of(std::uint32_t worker) const;
  bool is_here(const std::string& host) const { return here_.contains(host); }
  HostShare share_of(const Slot&);
  Session& session_of(int rank) { return *sessions_.at(plan_.slots[rank].host); }

  Loop& loop_;
  OutputDesk& desk_;
  const JobSpec& spec_;
  Setting setting_;
  const Plan plan_;
  const Policy policy_;
  const Wording wording_;
  Supervisor supervisor_;

  std::set<std::string> here_;                                // hosts that are this machine
  std::deque<std::string> to_open_;                           // hosts whose turn is still to come
  std::set<std::string> connecting_;                          // hosts that are not this machine
  Spawner spawner_;                                           // of sessions
  std::map<std::string, std::unique_ptr<Session>> sessions_;  // by host
  std::map<std::string, TimePoint> last_heard_;               // the same, of those that are ready
  std::map<std::string, agent::Facts> facts_;                 // the same
  std::map<std::string, std::size_t> unacknowledged_;         // the same: bytes of output
  std::map<int, Doing> doings_;                               // by rank, once the job has failed
  Wayfinding wayfinding_;
  std::map<std::string, Door> ways_;                // to each host, once they are known
  std::unique_ptr<rendezvous::StoreServer> store_;  // the same
  std::vector<Place> places_;                       // by rank, once all hosts are known
  std::optional<Recipes> recipes_;                  // the same
  Feeder feeder_;

  // Given back with this driver: when no process is left to be ended, a signal may end us, who
  // may be waiting for a reader of the last output.
  std::unique_ptr<Signals> signals_;
  Loop::Watch signal_watch_;
  Loop::Timer alarm_, lease_timer_, silence_timer_, progress_timer_;
  Progress progress_;
  bool slow_ = false;  // it has not risen within a moment, so the user is told how far it is
  const TimePoint began_;
  news::RoseUp rise_;
};

}  // namespace corro::launcher
