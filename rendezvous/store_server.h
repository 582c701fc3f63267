#pragma once

#include <map>
#include <memory>

#include "base/channel.h"
#include "base/crypto.h"
#include "base/loop.h"
#include "base/socket.h"
#include "rendezvous/store_core.h"

namespace kolo {

// The store on a socket.  A connection that has not proved the job's key within a few seconds is
// closed, and until it has, nothing it says is parsed.
//
// Owned by the job; belongs to the loop thread.
class StoreServer {
 public:
  static Result<std::unique_ptr<StoreServer>> start(Loop&, const Address&, const Key&);

  const Address& address() const { return address_; }
  void announce(const Departure&);

 private:
  using ClientId = StoreCore::ClientId;
  struct Client {
    std::unique_ptr<Channel> channel;
    Loop::Timer must_prove;  // until it has
  };

  StoreServer(Loop&, Fd listener, Address, const Key&);
  void on_connection();
  void drop(ClientId);
  Result<Unit> on_frame(ClientId, const Frame&);
  void deliver(const StoreCore::Replies&);
  void set_alarm();

  Loop& loop_;
  Fd listener_;
  Address address_;
  Key key_;
  StoreCore core_;
  std::map<ClientId, Client> clients_;
  ClientId last_client_ = 0;
  Loop::Watch connections_;
  Loop::Timer alarm_;
};

}  // namespace kolo
