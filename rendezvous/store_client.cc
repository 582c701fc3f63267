#include "rendezvous/store_client.h"

#include <fmt/format.h>

#include <array>

namespace corro::rendezvous {

using namespace store;
using namespace std::chrono_literals;

namespace {

// The server answers at the deadline; this much later the server itself is taken for lost.
constexpr auto kServerSlack = 2s;

std::uint32_t milliseconds_left(Deadline deadline) {
  return static_cast<std::uint32_t>(deadline.poll_timeout_ms());
}

std::uint64_t id_of(const Reply& reply) {
  return std::visit(
      []<class R>(const R& r) -> std::uint64_t {
        if constexpr (requires { r.id; })
          return r.id;
        else
          return 0;
      },
      reply);
}

Error unexpected_answer() {
  return Error(Errc::malformed, "the store gave another kind of answer");
}

}  // namespace

Result<StoreClient> StoreClient::connect(const Address& address, const Key& key,
                                         std::uint64_t generation, Deadline deadline) {
  const auto doing = [&] { return "reaching the job's store at " + address.text(); };
  auto socket = connect_to(address, deadline);
  if (!socket) return std::move(socket.error()).during(doing());
  auto proved = prove(socket->get(), Proof(Proof::Role::client, key, kPurpose), deadline);
  if (!proved) return std::move(proved.error()).during(doing());
  return StoreClient(std::move(*socket), generation);
}

StoreClient::StoreClient(Fd socket, std::uint64_t generation)
    : socket_(std::move(socket)), generation_(generation) {}

Result<Unit> StoreClient::set(std::string_view key, Bytes value, Deadline deadline) {
  if (auto why = unfit(key, value)) return std::move(*why);
  const auto id = ++last_id_;
  auto reply = ask(Set{id, std::string(key), std::move(value)}, id, deadline);
  if (!reply) return reply.error();
  return std::holds_alternative<Done>(*reply) ? Result<Unit>(Unit{}) : unexpected_answer();
}

Result<Bytes> StoreClient::wait_for(std::string_view key, Deadline deadline) {
  if (auto why = unfit(key, {})) return std::move(*why);
  const auto id = ++last_id_;
  auto reply = ask(WaitFor{id, std::string(key), milliseconds_left(deadline)}, id, deadline);
  if (!reply) return reply.error();
  if (auto* value = std::get_if<Value>(&*reply)) return std::move(value->value);
  return unexpected_answer();
}

Result<std::vector<Bytes>> StoreClient::gather(std::string_view key, int rank, int size,
                                               Bytes value, Deadline deadline) {
  if (auto why = unfit(key, value)) return std::move(*why);
  const auto id = ++last_id_;
  auto reply = ask(Gather{id, std::string(key), static_cast<std::uint32_t>(rank),
                          static_cast<std::uint32_t>(size), std::move(value),
                          milliseconds_left(deadline), generation_},
                   id, deadline);
  if (!reply) return reply.error();
  if (auto* values = std::get_if<Values>(&*reply)) return std::move(values->values);
  return unexpected_answer();
}

Result<Reply> StoreClient::ask(const Request& request, std::uint64_t id, Deadline deadline) {
  answer_.reset();  // to a request that was given up
  const Deadline patience{deadline.at + kServerSlack};
  auto sent = write_all(socket_.get(), encode_frame(request, id), patience);
  // A store that is gone may have left its last news; the end is found when they are read.
  if (!sent && sent.error().code() != Errc::closed)
    return std::move(sent.error()).during("asking the job's store");
  for (;;) {
    if (auto answer = std::exchange(answer_, std::nullopt)) {
      if (auto* refused = std::get_if<Refused>(&*answer))
        return Error(refused->code, std::move(refused->text));
      return std::move(*answer);
    }
    if (culprit()) return Error(Errc::peer_lost, culprit()->text());
    if (auto ready = wait_for_any({{socket_.get(), true, false}}, patience); !ready)
      return std::move(ready.error()).during("waiting for the job's store");
    if (auto read = read_once(); !read) return read.error();
  }
}

Result<bool> StoreClient::read_once() {
  std::array<std::uint8_t, 64 * 1024> buffer;
  const auto moved = read_some(socket_.get(), buffer);
  if (moved && moved->again) return false;
  if (moved ? moved->bytes == 0 : moved.error().code() == Errc::closed)
    return Error(Errc::closed, "the job's store is gone: horovodrun has ended");
  if (!moved) return Error(moved.error()).during("the job's store");
  auto fed = reader_.feed(ByteView(buffer).first(moved->bytes), [this](const Frame& frame) {
    auto reply = decode_frame<Reply>(frame);
    return reply ? on_reply(std::move(*reply)) : Result<Unit>(reply.error());
  });
  if (!fed) return fed.error();
  return true;
}

Result<Unit> StoreClient::on_reply(Reply reply) {
  const auto* notice = std::get_if<Notice>(&reply);
  if (!notice) {
    // An answer that nobody waits for any more came after its request was given up.
    if (id_of(reply) == last_id_) answer_ = std::move(reply);
    return Unit{};
  }
  if (notice->departure.generation != generation_) return Unit{};
  fresh_.push_back(notice->departure);
  if (!first_) first_ = notice->departure;
  if (notice->departure.manner == Departure::Manner::died) death_ = notice->departure;
  return Unit{};
}

Result<Unit> StoreClient::read_news() {
  for (;;) {
    const auto read = read_once();
    if (!read) return read.error();
    if (!*read) return Unit{};
  }
}

Result<std::vector<Departure>> StoreClient::take_departures() {
  const auto read = read_news();
  // Who told of a death may be gone right after: the news comes first, the end next time.
  if (!read && (fresh_.empty() || read.error().code() != Errc::closed)) return read.error();
  return std::exchange(fresh_, {});
}

}  // namespace corro::rendezvous
