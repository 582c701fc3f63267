#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/crypto.h"
#include "base/frame.h"
#include "base/socket.h"
#include "rendezvous/messages.h"

namespace corro::rendezvous {

// A worker's connection to the store.  Calls wait in place, each to its deadline; while they
// wait, and whenever take_departures() is called, news of other workers' ends comes in.
//
// A wait ends with `peer_lost` as soon as any worker of this generation has died: whatever it
// waits for may never come.
//
// Belongs to one thread at a time.
class StoreClient {
 public:
  static Result<StoreClient> connect(const Address&, const Key&, std::uint64_t generation,
                                     Deadline);

  Result<Unit> set(std::string_view key, Bytes value, Deadline);

  // `timed_out` names the key, so that the user learns which worker is missing.
  Result<Bytes> wait_for(std::string_view key, Deadline);

  // Every rank of `size` gives its value and gets all of them, in rank order.  `timed_out` names
  // the ranks that did not come.
  Result<std::vector<Bytes>> gather(std::string_view key, int rank, int size, Bytes value,
                                    Deadline);

  // Readable when there may be news.
  int notice_fd() const { return socket_.get(); }

  // Takes in what has come, for culprit() and the next take_departures().  Does not wait.  An
  // error: the store is gone.
  Result<Unit> read_news();

  // What has come in since the last call, read_news() included.
  Result<std::vector<Departure>> take_departures();

  // Once a worker of this generation has died: the first that departed, in whatever manner, since
  // who dies after it may have died for want of it.
  const std::optional<Departure>& culprit() const { return death_ ? first_ : death_; }

 private:
  StoreClient(Fd socket, std::uint64_t generation);

  Result<store::Reply> ask(const store::Request&, std::uint64_t id, Deadline);
  Result<bool> read_once();  // false: nothing there
  Result<Unit> on_reply(store::Reply);

  Fd socket_;
  std::uint64_t generation_;
  FrameReader reader_{store::kReplyLimit};
  std::uint64_t last_id_ = 0;           // of the one request that may be under way
  std::optional<store::Reply> answer_;  // to it
  std::vector<Departure> fresh_;
  std::optional<Departure> first_, death_;
};

}  // namespace corro::rendezvous
