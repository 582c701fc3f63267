#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "rendezvous/store_core.h"

namespace corro::rendezvous {

// A store under any sequence of requests, times and losses, told by bytes: three of them choose
// the next step.  Beside the store it keeps the plainest model of what was asked and set, and
// after every step it says what of the store's promises does not hold.
//
// For random scripts and for the fuzzer.
class StoreStory {
 public:
  // Plays the script to its end and then lets all time pass.  The first broken promise, if any.
  std::optional<std::string> play(ByteView script);

 private:
  using ClientId = StoreCore::ClientId;
  using Call = std::pair<ClientId, std::uint64_t>;  // a client and the number of its request
  struct Pending {
    std::string key;
    TimePoint until;
    bool gathers = false;
  };
  struct Group {
    std::uint32_t size = 0;
    std::map<std::uint32_t, Bytes> given;
  };

  void step(std::uint8_t what, std::uint8_t who, std::uint8_t how);
  void join(ClientId);
  void leave(ClientId);
  void ask(ClientId, const store::Request&);
  void note(ClientId, const store::Set&);
  void note(ClientId, const store::WaitFor&);
  void note(ClientId, const store::Gather&);

  void hear(const StoreCore::Replies&);
  void on(ClientId, const store::Done&);
  void on(ClientId, const store::Value&);
  void on(ClientId, const store::Values&);
  void on(ClientId, const store::Refused&);
  void on(ClientId, const store::Notice&);
  std::size_t waits_of(ClientId) const;
  Pending settled(ClientId, std::uint64_t id);
  void expect_hope(const Pending&);
  void check_wake();
  void expect(bool holds, const char* promise);

  StoreCore core_;
  TimePoint now_{};
  std::uint64_t last_id_ = 0;
  std::set<ClientId> here_;
  std::map<std::string, Bytes> set_;
  std::map<std::string, Group> groups_;
  std::map<Call, Pending> pending_;
  std::set<std::pair<ClientId, std::int32_t>> told_;
  std::set<std::int32_t> departed_;
  std::optional<std::string> broken_;
};

}  // namespace corro::rendezvous
