#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/store_core.h"
#include "runtime/group/execution.h"
#include "runtime/group/member.h"
#include "runtime/pattern/choose.h"
#include "tests/sim/calls.h"
#include "tests/support/sim_network.h"
#include "tests/support/sim_time.h"

namespace corro::runtime {

struct Death {
  int rank = 0;
  Duration when{};
  bool loses_bytes = false;  // that it had written and that had not arrived yet
};

using ScheduleFor = std::function<std::unique_ptr<Schedule>(const Operation&, int rank, int size)>;

// One of those that fit, by the operation's shape, so that all ranks take the same.
std::unique_ptr<Schedule> any_schedule(const Operation&, int rank, int size);

// All that a simulated world depends on.
struct Scenario {
  std::uint64_t seed = 0;
  int size = 1;
  int calls = 2;  // and then a barrier
  Weather weather;
  std::vector<Death> deaths;
  bool launcher_tells = true;  // of the end of workers
  ScheduleFor schedule = any_schedule;
};

// A job in virtual time: real members on simulated connections, the store's real decisions, and
// ranks that call a number of random collectives and then leave, unless they die before.
class World {
 public:
  explicit World(const Scenario&);
  ~World();

  void play();

  // The first promise that does not hold: a wrong value, a hang, a failure without a death, or a
  // survivor that blames another than the first to die, or learns of it too late.
  const std::optional<std::string>& complaint() const { return complaint_; }

  std::uint64_t digest() const { return time_.digest(); }
  Duration duration() const { return ended_.time_since_epoch(); }
  int failures() const { return failures_; }

 private:
  enum class Fate { running, finished, failed, dead };

  struct Rank {
    std::unique_ptr<Member> member;
    std::vector<std::pair<std::shared_ptr<SimConnection>, int>> sockets;  // connection, side
    TimePoint told;  // when the last notice so far reaches it
    std::size_t call = 0;
    Bytes in, out;
    std::optional<Execution> execution;
    Bytes piece, scratch;
    bool busy = false;  // in a call
    TimePoint started;
    bool planned = false;  // an advance is
    TimePoint alarm;
    Fate fate = Fate::running;
  };

  void connect(int lower, int higher, std::vector<std::unique_ptr<ReadyLinks>>&);
  void start_call(int rank);
  void advance_soon(int rank);
  void advance(int rank);
  void on_result(int rank);
  void on_failure(int rank);
  void leave(int rank, Fate, const std::string& cause);
  void kill(const Death&);
  void announce(const rendezvous::Departure&);
  void deliver(int rank, const rendezvous::Departure&);
  void judge_end();
  void complain(const std::string&);

  Scenario scenario_;
  test::Chance chance_;
  test::Timeline time_;
  rendezvous::StoreCore store_;
  std::vector<Call> calls_;
  std::vector<Rank> ranks_;
  std::optional<int> first_dead_;
  TimePoint died_, ended_;
  int failures_ = 0;
  std::optional<std::string> complaint_;
};

}  // namespace corro::runtime
