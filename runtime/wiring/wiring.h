#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/time.h"
#include "rendezvous/store_client.h"
#include "runtime/transport/endpoint.h"
#include "runtime/wiring/handshake.h"

namespace corro::runtime {

// How one rank can be reached.  Every rank puts its own into the store and gets all of them.
struct Offer {
  std::string address;      // "10.0.0.3:40001": where it listens
  std::string host;         // as the launcher calls it
  std::string machine;      // ranks with equal ones may share memory; the exchange proves it
  std::uint64_t nonce = 0;  // tells one meeting of the same ranks from the next
  CORRO_FIELDS(address, host, machine, nonce)
};

// What ranks that may share memory have in common: the machine as it was booted, and its network,
// since sockets by which memory is handed over do not leave that.
std::string this_machine();

// A rank among the others of its generation, and where it may listen.
struct Seat {
  Peer self;
  int size = 1;
  std::uint64_t generation = 0;
  Key key;
  std::string ip;
  PortRange ports;
};

// Connects ranks when a schedule first needs it: of two ranks the lower dials.  A pair has one
// connection for each group, so that groups never wait for each other on a link.
//
// Connections that do not prove the job's key are refused, or dropped when they stay silent;
// they neither end a wait nor delay it by much.  A dialler that is dropped meanwhile dials again.
//
// Never waits, but in meet().  Belongs to one thread at a time.
class Wiring {
 public:
  // Listens, and waits until every rank has come to the store.
  static Outcome<std::unique_ptr<Wiring>> meet(const Seat&, std::string machine,
                                               rendezvous::StoreClient&, Deadline);

  const std::vector<Offer>& offers() const { return offers_; }
  std::uint64_t session() const { return session_; }
  Peer peer(int rank) const { return {rank, offers_[static_cast<std::size_t>(rank)].host}; }
  const Seat& seat() const { return seat_; }

  // The connection with that rank for that group: empty while it is being made.  The first call
  // begins it.  A failure is `closed`, and says what went wrong last.
  Outcome<Fd> connection(std::uint64_t group, int rank);

  // Connections for that group that others have made and this rank has not asked for.
  std::vector<std::pair<int, Fd>> arrived(std::uint64_t group);

  void add_interests(std::vector<Interest>&) const;

 private:
  struct LinkId {
    std::uint64_t group;
    int rank;
    auto operator<=>(const LinkId&) const = default;
  };
  struct Dial {
    TimePoint give_up;
    TimePoint next;  // when to dial again
    Duration pause{};
    std::string trouble;                 // of the last attempt
    std::optional<Handshake> handshake;  // under way
    Fd connecting;                       // before that
  };
  struct Visitor {
    Handshake handshake;
    TimePoint since;
  };

  explicit Wiring(const Seat&);

  void progress(TimePoint now);
  void accept(TimePoint now);
  void greet_visitors(TimePoint now);
  bool greet(Visitor&);
  void dial(const LinkId&, Dial&, TimePoint now);
  void dial_again(Dial&, TimePoint now, const std::string& trouble);
  std::optional<std::string> unwanted(const Hello&, int from) const;

  Seat seat_;
  std::vector<Offer> offers_;
  std::uint64_t session_ = 0;
  Fd listener_;
  TimePoint accept_again_;  // not before this
  std::list<Visitor> visitors_;
  std::map<LinkId, Dial> dials_;
  std::map<LinkId, Fd> arrived_;  // proved, and not yet asked for
};

// The links of one group over TCP.
class TcpLinks final : public Links {
 public:
  // `ranks` of the job, by index in the group.
  TcpLinks(Wiring&, std::uint64_t group, std::vector<int> ranks);

  Outcome<Endpoint*> link(int index) override;
  std::vector<Endpoint*> open() const override;
  bool making() const override { return making_; }
  void add_interests(std::vector<Interest>&) const override;
  void close() override { links_.clear(); }

 private:
  Endpoint* add(int rank, Fd socket);

  Wiring& wiring_;
  std::uint64_t group_;
  std::vector<int> ranks_;
  std::map<int, std::unique_ptr<Endpoint>> links_;
  bool making_ = false;  // a link that was asked for is not there yet
};

// Makes the links with the neighbours on the ring, over which a failure reaches every rank of the
// group whatever its schedules use, and waits until they are there.
Outcome<Unit> connect_ring(Links&, Wiring&, const std::vector<Peer>& roster, int self,
                           rendezvous::StoreClient&, Deadline);

}  // namespace corro::runtime
