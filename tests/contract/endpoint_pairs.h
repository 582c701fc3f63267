#pragma once

#include <sys/socket.h>

#include <memory>
#include <tuple>

#include "base/assert.h"
#include "base/socket.h"
#include "runtime/transport/stream_endpoint.h"
#include "tests/support/sim_network.h"

// Two endpoints that are connected with each other, one kind for each implementation.  `wait`
// returns when one of them may be able to move.
namespace corro::runtime {

inline const Peer kAda{1, "ada"}, kBob{2, "bob"};

class SocketPair {
 public:
  std::unique_ptr<Endpoint> ada, bob;

  void wait() {
    std::vector<Interest> interests;
    for (const auto* end : {&ada, &bob})
      if (*end) interests.push_back((*end)->interest());
    CORRO_ASSERT(bool(wait_for_any(interests, Deadline::in(std::chrono::seconds(10)))));
  }

 protected:
  SocketPair(Fd a, Fd b)
      : ada(std::make_unique<StreamEndpoint>(kAda, kBob, stream(std::move(a)))),
        bob(std::make_unique<StreamEndpoint>(kBob, kAda, stream(std::move(b)))) {}

 private:
  static std::unique_ptr<Stream> stream(Fd fd) {
    return std::make_unique<SocketStream>(std::move(fd));
  }
};

class TcpPair : public SocketPair {
 public:
  TcpPair() : TcpPair(connected()) {}

 private:
  explicit TcpPair(std::pair<Fd, Fd> ends)
      : SocketPair(std::move(ends.first), std::move(ends.second)) {}

  static std::pair<Fd, Fd> connected() {
    const auto deadline = Deadline::in(std::chrono::seconds(10));
    const auto listener = listen_on({"127.0.0.1", 0});
    auto a = connect_to(*local_address(listener->get()), deadline);
    CORRO_ASSERT(bool(wait_for_any({{listener->get(), true, false}}, deadline)));
    auto b = accept_from(listener->get());
    return {std::move(*a), std::move(*b)};
  }
};

class UnixPair : public SocketPair {
 public:
  UnixPair() : UnixPair(connected()) {}

 private:
  explicit UnixPair(std::pair<Fd, Fd> ends)
      : SocketPair(std::move(ends.first), std::move(ends.second)) {}

  static std::pair<Fd, Fd> connected() {
    int ends[2];
    CORRO_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    return {Fd(ends[0]), Fd(ends[1])};
  }
};

class SimPair {
 private:
  test::Timeline time_;  // before what lives in it
  test::Chance chance_{7};

 public:
  std::unique_ptr<Endpoint> ada, bob;

  SimPair() {
    const auto connection = std::make_shared<SimConnection>(
        time_, chance_, Weather{.piece = 5000, .window = 7000}, [](int) {});
    ada = std::make_unique<StreamEndpoint>(kAda, kBob, std::make_unique<SimStream>(connection, 0));
    bob = std::make_unique<StreamEndpoint>(kBob, kAda, std::make_unique<SimStream>(connection, 1));
  }

  void wait() { time_.run(); }
};

using EveryPair = std::tuple<TcpPair, UnixPair, SimPair>;

}  // namespace corro::runtime
