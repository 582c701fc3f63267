#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/store_core.h"
#include "tests/support/sim_time.h"

namespace corro::rendezvous {

// The store's decisions and its clients in virtual time.  What one client says arrives in order,
// after any delay; what several say arrives in any order.  Clients may vanish at any moment, and
// then what they had said last may be lost.
//
// Each client gathers with the others, sets a key of its own, waits for its neighbour's and for
// one that nobody sets, and tries to set a key that everybody wants to.
class StoreWorld {
 public:
  StoreWorld(std::uint64_t seed, int clients, int vanishing);

  void play();

  // The first promise of the store that does not hold.
  const std::optional<std::string>& complaint() const { return complaint_; }
  std::uint64_t digest() const { return time_.digest(); }
  int gatherings_missed() const { return gatherings_missed_; }

 private:
  struct Client {
    bool here = true;
    TimePoint up, down;  // when the last message so far arrives, at the store and at the client
    std::uint64_t last_id = 0;
    std::map<std::uint64_t, store::Request> open;  // not yet answered
    std::map<std::string, Bytes> seen;             // values, by key
    std::set<int> notices;
  };

  void live(int client);
  void ask(int client, store::Request);
  void vanish(int client);
  void deliver(const StoreCore::Replies&);
  void on_reply(int client, const store::Reply&);
  void on_value(int client, const std::string& key, const Bytes&);
  void on_refusal(int client, const store::Request&, const store::Refused&);
  void set_alarm();
  void judge_end();
  void expect(bool holds, int client, const char* promise);
  TimePoint arrival(TimePoint& last);

  test::Chance chance_;
  test::Timeline time_;
  StoreCore store_;
  std::vector<Client> clients_;
  std::set<int> vanishing_;
  std::set<int> absent_;  // whose part in the gathering has not reached the store
  int gatherings_missed_ = 0;
  std::map<std::string, Bytes> values_;  // as the first to see them saw them
  int winners_ = 0;                      // of the race for one key
  std::optional<TimePoint> alarm_;
  std::optional<std::string> complaint_;
};

}  // namespace corro::rendezvous
