#include "rendezvous/store_server.h"

#include "base/log.h"

namespace corro::rendezvous {

using namespace std::chrono_literals;

namespace {

// When descriptors have run out, the connection that waits would wake us again at once.
constexpr auto kPause = 100ms;

}  // namespace

Result<std::unique_ptr<StoreServer>> StoreServer::start(Loop& loop, const Address& where,
                                                        const Key& key, const StoreLimits& limits,
                                                        PortRange ports) {
  auto listener = listen_on(where, ports);
  if (!listener) return listener.error();
  auto address = local_address(listener->get());
  if (!address) return address.error();
  return std::unique_ptr<StoreServer>(
      new StoreServer(loop, std::move(*listener), *address, key, limits));
}

StoreServer::StoreServer(Loop& loop, Fd listener, Address address, const Key& key,
                         const StoreLimits& limits)
    : loop_(loop),
      listener_(std::move(listener)),
      address_(std::move(address)),
      key_(key),
      limits_(limits) {
  listen();
}

void StoreServer::listen() {
  connections_ = loop_.watch(listener_.get(), Ready::read, [this] { on_connection(); });
}

void StoreServer::on_connection() {
  auto socket = accept_from(listener_.get());
  if (!socket) {
    log(LogLevel::warning, "store: " + socket.error().text());
    connections_ = {};
    pause_ = loop_.at(loop_.now() + kPause, [this] { listen(); });
  } else if (*socket && clients_.size() < limits_.connections) {
    add(std::move(*socket));
  }
}

void StoreServer::add(Fd socket) {
  const ClientId id = ++last_client_;
  Channel::Events events;
  events.on_frame = [this, id](const Frame& frame) { return on_frame(id, frame); };
  events.on_end = [this, id](const Error& why) { on_end(id, why); };
  events.on_proved = [this, id] {
    clients_.at(id).must_prove = {};
    ++arrived_;
    if (on_arrival_) on_arrival_(arrived_);
    deliver(core_.joined(id));
  };

  Client& client = clients_[id];
  client.must_prove = loop_.at(loop_.now() + limits_.proof_time, [this, id] { drop(id); });
  client.channel = std::make_unique<Channel>(loop_, std::move(socket), Fd(), store::kRequestLimit,
                                             Proof(Proof::Role::server, key_, store::kPurpose),
                                             std::move(events));
}

void StoreServer::on_end(ClientId id, const Error& why) {
  if (why.code() != Errc::closed) log(LogLevel::debug, "store: a connection ended: " + why.text());
  drop(id);
}

// A channel must not be destroyed by what it calls, and this may be one of its calls.
void StoreServer::drop(ClientId id) {
  dead_.push_back(id);
  burial_ = loop_.at(loop_.now(), [this] { bury(); });
}

void StoreServer::bury() {
  for (const ClientId id : std::exchange(dead_, {})) {
    core_.left(id);
    clients_.erase(id);
  }
}

Result<Unit> StoreServer::on_frame(ClientId id, const Frame& frame) {
  if (clients_.at(id).channel->backlog() > limits_.backlog)
    return Error(Errc::too_large, "a client asks without reading the answers");
  auto request = decode_frame<store::Request>(frame);
  if (!request) return request.error();
  deliver(core_.on(id, *request, loop_.now()));
  set_alarm();
  return Unit{};
}

void StoreServer::announce(const Departure& departure) {
  deliver(core_.announce(departure));
}

void StoreServer::deliver(const StoreCore::Replies& replies) {
  for (const auto& [id, reply] : replies) clients_.at(id).channel->send(reply);
}

void StoreServer::set_alarm() {
  const auto wake = core_.wake();
  alarm_ = !wake ? Loop::Timer() : loop_.at(*wake, [this] {
    deliver(core_.tick(loop_.now()));
    set_alarm();
  });
}

}  // namespace corro::rendezvous
