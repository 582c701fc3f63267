#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "rendezvous/messages.h"

namespace corro::rendezvous {

// Keys and values that workers use to find each other, as decisions: requests and time in,
// replies out.  A value, once set, never changes.  Whoever asks for a key that is not there is
// answered when it comes or when its time is over, and never polls.
//
// What a client says before it has joined or after it has left is not heard.
//
// Sans-IO; the same object serves real sockets and the simulator.
class StoreCore {
 public:
  using ClientId = std::uint64_t;
  using Replies = std::vector<std::pair<ClientId, store::Reply>>;

  // A client is told first of all who went before it came.
  Replies joined(ClientId);
  // Whatever it was waiting for is forgotten; what it set stays.
  void left(ClientId);

  // A request is answered now or later, but once only.
  Replies on(ClientId, const store::Request&, TimePoint now);

  // Tells every client, once for each rank and generation, and those who gather values that will
  // not come.
  Replies announce(const Departure&);

  // Answers those whose time is over.
  Replies tick(TimePoint now);
  std::optional<TimePoint> wake() const;

 private:
  struct Waiter {
    ClientId client;
    std::uint64_t id;
    TimePoint until;
  };
  // Until the last rank has come.
  struct Gathering {
    std::uint32_t size = 0;
    std::uint64_t generation = 0;
    std::map<std::uint32_t, Bytes> values;  // by rank
    std::vector<Waiter> waiters;
    std::size_t charged = 0;  // to the total

    std::string missing_ranks() const;
    bool lacks(const Departure&) const;
  };

  Replies on_request(ClientId, const store::Set&, TimePoint);
  Replies on_request(ClientId, const store::WaitFor&, TimePoint);
  Replies on_request(ClientId, const store::Gather&, TimePoint);
  std::optional<Error> no_room(std::size_t more) const;
  std::optional<Error> waits_too_much(ClientId) const;
  std::optional<Error> misfit(const Gathering&, const store::Gather&) const;
  Replies complete(const std::string& key);
  void give_up(Gathering&, const Departure&, Replies&);
  void hold(std::vector<Waiter>&, const Waiter&);
  void answer(const Waiter&, store::Reply, Replies&);
  template <class Why>
  void expire(std::vector<Waiter>&, TimePoint, Why, Replies&);

  std::map<ClientId, std::size_t> held_;  // by client: how many of its requests wait
  std::unordered_map<std::string, Bytes> values_;
  std::unordered_map<std::string, std::vector<Waiter>> waiting_;
  std::unordered_map<std::string, Gathering> gatherings_;
  std::vector<Departure> departures_;
  std::size_t total_bytes_ = 0;
};

}  // namespace corro::rendezvous
