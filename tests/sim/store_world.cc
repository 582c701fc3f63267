#include "tests/sim/store_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace corro::rendezvous {

using namespace std::chrono_literals;
using namespace store;

namespace {

constexpr auto kDelay = 30ms;
constexpr std::uint32_t kWithinMs = 400;  // more than all delays together

std::string own_key(int client) {
  return fmt::format("own/{}", client);
}

const std::string& key_of(const Request& request) {
  return std::visit([](const auto& r) -> const std::string& { return r.key; }, request);
}

}  // namespace

StoreWorld::StoreWorld(std::uint64_t seed, int clients, int vanishing)
    : chance_(seed), clients_(static_cast<std::size_t>(clients)) {
  while (static_cast<int>(vanishing_.size()) < vanishing)
    vanishing_.insert(static_cast<int>(chance_.below(clients_.size())));
}

void StoreWorld::play() {
  for (int client = 0; client < static_cast<int>(clients_.size()); ++client) {
    absent_.insert(client);
    time_.after(chance_.within(kDelay), [this, client] {
      deliver(store_.joined(static_cast<StoreCore::ClientId>(client)));
      live(client);
      if (vanishing_.contains(client))
        time_.after(chance_.within(3 * kDelay), [this, client] { vanish(client); });
    });
  }
  time_.run();
  judge_end();
}

// All requests at once: the store must keep them apart.
void StoreWorld::live(int client) {
  const int size = static_cast<int>(clients_.size());
  const Bytes mine = bytes_of(own_key(client));
  std::vector<Request> requests = {
      Gather{0, "all", static_cast<std::uint32_t>(client), static_cast<std::uint32_t>(size), mine,
             kWithinMs},
      Set{0, own_key(client), mine},
      Set{0, "race", mine},
      WaitFor{0, own_key((client + 1) % size), kWithinMs},
      WaitFor{0, "race", kWithinMs},
      WaitFor{0, "nobody's", kWithinMs},
  };
  while (!requests.empty()) {
    const auto at = requests.begin() + static_cast<std::ptrdiff_t>(chance_.below(requests.size()));
    ask(client, *at);
    requests.erase(at);
  }
}

void StoreWorld::ask(int client, Request request) {
  Client& c = clients_[client];
  std::visit([&](auto& r) { r.id = ++c.last_id; }, request);
  c.open.emplace(c.last_id, request);
  time_.at(arrival(c.up), [this, client, request] {
    if (!clients_[client].here) return;  // lost on its way
    time_.note("request", static_cast<std::uint64_t>(client));
    if (std::holds_alternative<Gather>(request)) absent_.erase(client);
    deliver(store_.on(static_cast<StoreCore::ClientId>(client), request, time_.now()));
    set_alarm();
  });
}

void StoreWorld::vanish(int client) {
  time_.note("vanished", static_cast<std::uint64_t>(client));
  clients_[client].here = false;
  store_.left(static_cast<StoreCore::ClientId>(client));
  time_.after(chance_.within(kDelay), [this, client] {
    const Departure departure{0, client, "h", "vanished", Departure::Manner::died};
    deliver(store_.announce(departure));
    deliver(store_.announce(departure));  // told twice, heard once
  });
}

void StoreWorld::deliver(const StoreCore::Replies& replies) {
  for (const auto& [id, reply] : replies) {
    const int client = static_cast<int>(id);
    expect(clients_[client].here, client, "who has left gets no answers");
    time_.at(arrival(clients_[client].down), [this, client, answer = reply] {
      if (clients_[client].here) on_reply(client, answer);
    });
  }
}

void StoreWorld::on_reply(int client, const Reply& reply) {
  time_.note("reply", static_cast<std::uint64_t>(client) << 8 | reply.index());
  Client& c = clients_[client];
  if (const auto* notice = std::get_if<Notice>(&reply))
    return expect(c.notices.insert(notice->departure.rank).second, client, "a notice comes once");

  const auto id = std::visit(
      []<class R>(const R& r) -> std::uint64_t {
        if constexpr (requires { r.id; }) return r.id;
        return 0;
      },
      reply);
  const auto asked = c.open.extract(id);
  if (asked.empty()) return expect(false, client, "a request is answered once");
  const Request& request = asked.mapped();
  if (const auto* value = std::get_if<Value>(&reply))
    on_value(client, key_of(request), value->value);
  else if (const auto* values = std::get_if<Values>(&reply))
    for (std::size_t rank = 0; rank < values->values.size(); ++rank)
      on_value(client, fmt::format("all/{}", rank), values->values[rank]);
  else if (const auto* refused = std::get_if<Refused>(&reply))
    on_refusal(client, request, *refused);
  else if (key_of(request) == "race")
    ++winners_;
}

void StoreWorld::on_value(int client, const std::string& key, const Bytes& value) {
  expect(values_.try_emplace(key, value).first->second == value, client,
         "a value is the same for all and never changes");
}

void StoreWorld::on_refusal(int client, const Request& request, const Refused& refused) {
  if (std::holds_alternative<Set>(request))
    return expect(key_of(request) == "race" && refused.code == Errc::exists, client,
                  "only a key that is set cannot be set");
  if (refused.code == Errc::peer_lost) {
    ++gatherings_missed_;
    const auto named = [&](int gone) {
      return refused.text == fmt::format("rank {} on host h vanished", gone);
    };
    return expect(std::holds_alternative<Gather>(request) &&
                      std::any_of(vanishing_.begin(), vanishing_.end(), named),
                  client, "a gathering that cannot be complete names who is gone");
  }
  expect(refused.code == Errc::timed_out, client, "a wait ends by its value or its time");
  if (std::holds_alternative<Gather>(request)) {
    ++gatherings_missed_;
    expect(refused.text == fmt::format("all: rank {} of {} did not come", fmt::join(absent_, ", "),
                                       clients_.size()),
           client, "a gathering that times out names who did not come");
  } else if (key_of(request) != "nobody's") {
    const int setter = (client + 1) % static_cast<int>(clients_.size());
    expect(key_of(request) == own_key(setter) && vanishing_.contains(setter), client,
           "what was set in time is found");
  }
}

void StoreWorld::set_alarm() {
  const auto wake = store_.wake();
  if (!wake || alarm_ == wake) return;
  alarm_ = wake;
  time_.at(*wake, [this] {
    alarm_.reset();
    deliver(store_.tick(time_.now()));
    set_alarm();
  });
}

void StoreWorld::judge_end() {
  for (int client = 0; client < static_cast<int>(clients_.size()); ++client) {
    const Client& c = clients_[client];
    if (!c.here) continue;
    expect(c.open.empty(), client, "every request is answered");
    expect(c.notices == vanishing_, client, "everyone hears of everyone who is gone");
  }
  expect(!store_.wake(), -1, "nobody waits for ever");
  expect(winners_ <= 1, -1, "a key is set once");
}

void StoreWorld::expect(bool holds, int client, const char* promise) {
  if (!holds && !complaint_)
    complaint_ = fmt::format("client {}: not true that {}", client, promise);
}

TimePoint StoreWorld::arrival(TimePoint& last) {
  return last = std::max(last, time_.now() + chance_.within(kDelay));
}

}  // namespace corro::rendezvous
