#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/channel.h"
#include "base/crypto.h"
#include "base/loop.h"
#include "base/socket.h"
#include "rendezvous/store_core.h"

namespace corro::rendezvous {

// What a connection may take from the server.
struct StoreLimits {
  Duration proof_time = std::chrono::seconds(5);  // to prove the key
  std::size_t connections = 65536;
  std::size_t backlog = store::kReplyLimit;  // bytes that a client has asked for and not read
};

// The store on a socket.  A connection that has not proved the job's key within a few seconds is
// closed, and until it has, nothing it says is parsed.
//
// Owned by the job; belongs to the loop thread.
class StoreServer {
 public:
  static Result<std::unique_ptr<StoreServer>> start(Loop&, const Address&, const Key&,
                                                    const StoreLimits& = {}, PortRange = {});

  const Address& address() const { return address_; }
  void announce(const Departure&);

  // Calls, with how many have come so far, each time a client has proved the key.
  void on_arrival(std::function<void(int)> fn) { on_arrival_ = std::move(fn); }

 private:
  using ClientId = StoreCore::ClientId;
  struct Client {
    std::unique_ptr<Channel> channel;
    Loop::Timer must_prove;  // until it has
  };

  StoreServer(Loop&, Fd listener, Address, const Key&, const StoreLimits&);
  void listen();
  void on_connection();
  void add(Fd socket);
  void on_end(ClientId, const Error& why);
  void drop(ClientId);
  void bury();
  Result<Unit> on_frame(ClientId, const Frame&);
  void deliver(const StoreCore::Replies&);
  void set_alarm();

  Loop& loop_;
  Fd listener_;
  Address address_;
  Key key_;
  StoreLimits limits_;
  StoreCore core_;
  std::map<ClientId, Client> clients_;
  ClientId last_client_ = 0;
  int arrived_ = 0;
  std::function<void(int)> on_arrival_;
  std::vector<ClientId> dead_;  // to be buried
  Loop::Watch connections_;
  Loop::Timer alarm_, burial_, pause_;
};

}  // namespace corro::rendezvous
