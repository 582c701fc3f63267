#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lease.h"
#include "base/result.h"
#include "launcher/agent/protocol.h"
#include "launcher/fleet/host_life.h"
#include "launcher/session/session.h"

namespace corro::launcher {

// What happens to the hosts of a fleet.  After on_gone nothing more comes of a host.
class FleetClient {
 public:
  enum class Reason { version, silence, agent };  // why a host is given up

  virtual ~FleetClient() = default;

  virtual void on_reached(const std::string& host, const agent::Reached&) = 0;
  virtual void on_ready(const std::string& host, const agent::Ready&) = 0;
  virtual void on_surveyed(const std::string& host, const agent::Facts&) = 0;
  virtual void on_probed(const std::string& host, const agent::Knocked&) = 0;
  // What the host's agent says of its workers, in any phase.
  virtual void on_message(const std::string& host, const agent::Up&, std::uint64_t seq) = 0;

  virtual void on_not_started(const std::string& host, const Error&) = 0;  // its session
  virtual void on_unreachable(const std::string& host, const agent::Unreached&) = 0;
  virtual void on_given_up(const std::string& host, Reason, const std::string& why) = 0;
  virtual void on_gone(const std::string& host, const std::string& why) = 0;
};

// The hosts of a job or of the doctor: opens their sessions, not too many logins at once, says
// hello, checks versions, renews leases, and gives up hosts that are silent.
//
// Sans-IO but for the sessions, which `open` starts: the owner calls tick() when the time of wake()
// has come, and asks for wake() again after each call and each event.  Calls its client from
// within tick() and the sessions' events, never from within another call.
class Fleet {
 public:
  struct Host {
    std::string name;
    bool is_here = false;  // this machine: there is no login
  };

  struct Options {
    int logins_at_once = 64;
    LeaseTerms lease;
    Duration grace{};                       // which agents give to workers
    std::optional<Duration> login_timeout;  // none: the client has a deadline of its own
    bool gives_up_silent_hosts = true;
  };

  using Now = std::function<TimePoint()>;
  using Open =
      std::function<Result<std::unique_ptr<Session>>(const std::string& host, Session::Events)>;

  Fleet(const std::vector<Host>&, const Options&, Now, Open, FleetClient&);
  Fleet(const Fleet&) = delete;

  // Starts the sessions, as many as may log in at once, and the others as these get on.
  void open();

  void tick();
  TimePoint wake() const { return deferred_.empty() ? wake_ : TimePoint(); }

  void send(const std::string& host, const agent::Down&);
  void send_all(const agent::Down&);

  // Asks the host's agent to go, or turns back on the way there.  No further host is opened.
  void close(const std::string& host);
  // Ends the host's session by force.
  void terminate(const std::string& host);

  // Around a stop of this process: the agents stop the workers, and leases rest.
  void hold();
  void resume();

  HostPhase phase(const std::string& host) const { return member(host).phase; }
  bool all_in(std::initializer_list<HostPhase>) const;
  std::size_t size() const { return members_.size(); }

 private:
  struct Member {
    Host host;
    HostPhase phase = HostPhase::waiting;
    std::unique_ptr<Session> session{};
    std::optional<Lease> lease{};         // while it is ready
    std::optional<TimePoint> deadline{};  // of the login
    bool is_logging_in() const;
  };

  Member& member(const std::string& host) { return members_[places_.at(host)]; }
  const Member& member(const std::string& host) const { return members_[places_.at(host)]; }
  bool move(Member&, HostEvent);
  void open_next();
  void open(Member&);
  void on_message(Member&, const agent::Up&, std::uint64_t seq);
  void on_ready(Member&, const agent::Ready&);
  void on_end(Member&, const std::string& why);
  void give_up(Member&, FleetClient::Reason, const std::string& why);
  void renew_leases();
  void give_up_silent();
  void give_up_slow_logins();
  void set_wake();

  const Options options_;
  const Now now_;
  const Open open_;
  FleetClient& client_;
  std::deque<Member> members_;  // in the order in which they are opened; they stay where they are
  std::unordered_map<std::string, std::size_t> places_;
  bool is_opening_ = false;
  TimePoint renewal_, wake_;
  std::deque<std::function<void()>> deferred_;  // events for the client, for the next tick
};

}  // namespace corro::launcher
