#include "rendezvous/store_server.h"

#include <fmt/format.h>

#include "base/log.h"

namespace kolo {

using namespace std::chrono_literals;

namespace {

constexpr auto kProofTime = 5s;
// Strangers may hold this many connections open; a job's own workers prove themselves at once.
constexpr std::size_t kClientLimit = 65536;

}  // namespace

Result<std::unique_ptr<StoreServer>> StoreServer::start(Loop& loop, const Address& where,
                                                        const Key& key) {
  auto listener = listen_on(where);
  if (!listener) return listener.error();
  auto address = local_address(listener->get());
  if (!address) return address.error();
  return std::unique_ptr<StoreServer>(new StoreServer(loop, std::move(*listener), *address, key));
}

StoreServer::StoreServer(Loop& loop, Fd listener, Address address, const Key& key)
    : loop_(loop), listener_(std::move(listener)), address_(std::move(address)), key_(key) {
  connections_ = loop_.watch(listener_.get(), Ready::read, [this] { on_connection(); });
}

void StoreServer::on_connection() {
  auto socket = accept_from(listener_.get());
  if (!socket) return log(LogLevel::warning, socket.error().text());
  if (!*socket || clients_.size() >= kClientLimit) return;

  const ClientId id = ++last_client_;
  Client& client = clients_[id];
  client.must_prove = loop_.at(loop_.now() + kProofTime, [this, id] { drop(id); });
  client.channel = std::make_unique<Channel>(
      loop_, std::move(*socket), Fd(), store::kRequestLimit,
      Proof(Proof::Role::server, key_, store::kPurpose),
      Channel::Events{.on_frame = [this, id](const Frame& frame) { return on_frame(id, frame); },
                      .on_end =
                          [this, id](const Error& why) {
                            if (why.code() != Errc::closed)
                              log(LogLevel::debug, "store: a connection ended: " + why.text());
                            drop(id);
                          },
                      .on_proved =
                          [this, id] {
                            clients_[id].must_prove = {};
                            deliver(core_.joined(id));
                          }});
}

void StoreServer::drop(ClientId id) {
  core_.left(id);
  loop_.post([this, id] { clients_.erase(id); });
}

Result<Unit> StoreServer::on_frame(ClientId id, const Frame& frame) {
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
  for (const auto& [id, reply] : replies)
    if (const auto client = clients_.find(id); client != clients_.end())
      client->second.channel->send(reply);
}

void StoreServer::set_alarm() {
  const auto wake = core_.wake();
  alarm_ = !wake ? Loop::Timer() : loop_.at(*wake, [this] {
    deliver(core_.tick(loop_.now()));
    set_alarm();
  });
}

}  // namespace kolo
