#include "rendezvous/store_core.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace kolo {

using namespace store;

namespace {

Reply refusal(std::uint64_t id, const Error& why) {
  return Refused{id, why.code(), why.text()};
}

TimePoint end_of_wait(TimePoint now, std::uint32_t within_ms) {
  return now + std::chrono::milliseconds(within_ms);
}

constexpr auto nobody_waits = [](const auto& entry) { return entry.second.empty(); };

// The first few by name, so that 512 missing ranks are one readable line.
std::string list_of(const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t kShown = 8;
  const auto shown = std::min(ranks.size(), kShown);
  std::string text = fmt::format("{}", fmt::join(ranks.begin(), ranks.begin() + shown, ", "));
  if (ranks.size() > shown) text += fmt::format(" and {} more", ranks.size() - shown);
  return text;
}

}  // namespace

StoreCore::Replies StoreCore::joined(ClientId client) {
  clients_.insert(client);
  Replies replies;
  for (const Departure& departure : departures_) replies.emplace_back(client, Notice{departure});
  return replies;
}

void StoreCore::left(ClientId client) {
  clients_.erase(client);
  const auto of_client = [client](const Waiter& w) { return w.client == client; };
  for (auto& [key, waiters] : waiting_) std::erase_if(waiters, of_client);
  std::erase_if(waiting_, nobody_waits);
  for (auto& [key, gathering] : gatherings_) std::erase_if(gathering.waiters, of_client);
}

StoreCore::Replies StoreCore::on(ClientId client, const Request& request, TimePoint now) {
  return std::visit([&](const auto& r) { return on_request(client, r, now); }, request);
}

std::optional<Error> StoreCore::unfit(const std::string& key, const Bytes& value) const {
  if (key.empty() || key.size() > kKeyLimit)
    return Error(Errc::too_large, fmt::format("a key has 1 to {} bytes", kKeyLimit));
  if (value.size() > kValueLimit)
    return Error(Errc::too_large,
                 fmt::format("key {}: a value has at most {} bytes", key, kValueLimit));
  if (value.size() + key.size() + total_bytes_ > kTotalLimit)
    return Error(Errc::too_large, "the store is full");
  return std::nullopt;
}

StoreCore::Replies StoreCore::on_request(ClientId client, const Set& set, TimePoint) {
  if (const auto why = unfit(set.key, set.value)) return {{client, refusal(set.id, *why)}};
  if (!values_.try_emplace(set.key, set.value).second)
    return {{client,
             refusal(set.id, Error(Errc::exists, fmt::format("key {} is set already", set.key)))}};
  total_bytes_ += set.value.size() + set.key.size();

  Replies replies = {{client, Done{set.id}}};
  if (auto held = waiting_.extract(set.key))
    for (const Waiter& waiter : held.mapped())
      replies.emplace_back(waiter.client, Value{waiter.id, set.value});
  return replies;
}

StoreCore::Replies StoreCore::on_request(ClientId client, const WaitFor& wait, TimePoint now) {
  if (const auto why = unfit(wait.key, {})) return {{client, refusal(wait.id, *why)}};
  if (const auto found = values_.find(wait.key); found != values_.end())
    return {{client, Value{wait.id, found->second}}};
  waiting_[wait.key].push_back({client, wait.id, end_of_wait(now, wait.within_ms)});
  return {};
}

StoreCore::Replies StoreCore::on_request(ClientId client, const Gather& gather, TimePoint now) {
  if (const auto why = unfit(gather.key, gather.value)) return {{client, refusal(gather.id, *why)}};
  if (gather.rank >= gather.size || gather.size > kRankLimit)
    return {{client, refusal(gather.id, Error(Errc::invalid_input,
                                              fmt::format("gather {}: rank {} of {}", gather.key,
                                                          gather.rank, gather.size)))}};
  Gathering& all = gatherings_[gather.key];
  if (all.size == 0) all.size = gather.size;
  if (all.size != gather.size)
    return {{client, refusal(gather.id,
                             Error(Errc::invalid_input,
                                   fmt::format("gather {}: rank {} says there are {} "
                                               "ranks, others said {}",
                                               gather.key, gather.rank, gather.size, all.size)))}};
  if (!all.values.try_emplace(gather.rank, gather.value).second)
    return {{client, refusal(gather.id,
                             Error(Errc::exists, fmt::format("gather {}: rank {} was here already",
                                                             gather.key, gather.rank)))}};
  total_bytes_ += gather.value.size() + gather.key.size();
  all.waiters.push_back({client, gather.id, end_of_wait(now, gather.within_ms)});
  if (all.values.size() < all.size) return {};

  Values values;
  for (const auto& [rank, value] : all.values) values.values.push_back(value);
  Replies replies;
  for (const Waiter& waiter : std::exchange(all.waiters, {})) {
    values.id = waiter.id;
    replies.emplace_back(waiter.client, values);
  }
  return replies;
}

StoreCore::Replies StoreCore::announce(const Departure& departure) {
  const auto same = [&](const Departure& d) {
    return d.rank == departure.rank && d.generation == departure.generation;
  };
  if (std::any_of(departures_.begin(), departures_.end(), same)) return {};
  departures_.push_back(departure);
  Replies replies;
  for (const ClientId client : clients_) replies.emplace_back(client, Notice{departure});
  return replies;
}

StoreCore::Replies StoreCore::tick(TimePoint now) {
  Replies replies;
  for (auto& [key, waiters] : waiting_) {
    const Error why(Errc::timed_out, fmt::format("nobody has set {}", key));
    std::erase_if(waiters, [&](const Waiter& waiter) {
      if (waiter.until > now) return false;
      replies.emplace_back(waiter.client, refusal(waiter.id, why));
      return true;
    });
  }
  std::erase_if(waiting_, nobody_waits);
  for (auto& [key, gathering] : gatherings_) expire(gathering, key, now, replies);
  return replies;
}

void StoreCore::expire(Gathering& gathering, const std::string& key, TimePoint now,
                       Replies& replies) {
  std::erase_if(gathering.waiters, [&](const Waiter& waiter) {
    if (waiter.until > now) return false;
    std::vector<std::uint32_t> missing;
    for (std::uint32_t rank = 0; rank < gathering.size; ++rank)
      if (!gathering.values.contains(rank)) missing.push_back(rank);
    replies.emplace_back(
        waiter.client,
        refusal(waiter.id, Error(Errc::timed_out, fmt::format("{}: rank {} of {} did not come", key,
                                                              list_of(missing), gathering.size))));
    return true;
  });
}

std::optional<TimePoint> StoreCore::wake() const {
  std::optional<TimePoint> first;
  const auto consider = [&first](const std::vector<Waiter>& waiters) {
    for (const Waiter& waiter : waiters)
      if (!first || waiter.until < *first) first = waiter.until;
  };
  for (const auto& [key, waiters] : waiting_) consider(waiters);
  for (const auto& [key, gathering] : gatherings_) consider(gathering.waiters);
  return first;
}

}  // namespace kolo
