#include "rendezvous/store_core.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace corro::rendezvous {

using namespace store;

namespace {

Reply refusal(std::uint64_t id, const Error& why) {
  return Refused{id, why.code(), why.text()};
}

TimePoint end_of_wait(TimePoint now, std::uint32_t within_ms) {
  return now + std::chrono::milliseconds(within_ms);
}

std::size_t cost_of(std::string_view key, const Bytes& value) {
  return key.size() + value.size() + kEntryBytes;
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
  held_.try_emplace(client, 0);
  Replies replies;
  for (const Departure& departure : departures_) replies.emplace_back(client, Notice{departure});
  return replies;
}

void StoreCore::left(ClientId client) {
  held_.erase(client);
  const auto of_client = [client](const Waiter& w) { return w.client == client; };
  for (auto& [key, waiters] : waiting_) std::erase_if(waiters, of_client);
  std::erase_if(waiting_, nobody_waits);
  for (auto& [key, gathering] : gatherings_) std::erase_if(gathering.waiters, of_client);
}

StoreCore::Replies StoreCore::on(ClientId client, const Request& request, TimePoint now) {
  if (!held_.contains(client)) return {};
  return std::visit([&](const auto& r) { return on_request(client, r, now); }, request);
}

std::optional<Error> StoreCore::no_room(std::size_t more) const {
  if (total_bytes_ + more <= kTotalLimit) return std::nullopt;
  return Error(Errc::too_large, "the store is full");
}

std::optional<Error> StoreCore::waits_too_much(ClientId client) const {
  if (held_.at(client) < kHeldLimit) return std::nullopt;
  return Error(Errc::too_large, fmt::format("a client waits for at most {} things", kHeldLimit));
}

void StoreCore::hold(std::vector<Waiter>& waiters, const Waiter& waiter) {
  ++held_.at(waiter.client);
  waiters.push_back(waiter);
}

void StoreCore::answer(const Waiter& waiter, Reply reply, Replies& replies) {
  --held_.at(waiter.client);
  replies.emplace_back(waiter.client, std::move(reply));
}

StoreCore::Replies StoreCore::on_request(ClientId client, const Set& set, TimePoint) {
  const auto refuse = [&](const Error& why) { return Replies{{client, refusal(set.id, why)}}; };
  const auto cost = cost_of(set.key, set.value);
  if (const auto why = unfit(set.key, set.value)) return refuse(*why);
  if (values_.contains(set.key))
    return refuse(Error(Errc::exists, fmt::format("key {} is set already", set.key)));
  if (const auto why = no_room(cost)) return refuse(*why);
  values_.emplace(set.key, set.value);
  total_bytes_ += cost;

  Replies replies = {{client, Done{set.id}}};
  if (auto held = waiting_.extract(set.key))
    for (const Waiter& waiter : held.mapped()) answer(waiter, Value{waiter.id, set.value}, replies);
  return replies;
}

StoreCore::Replies StoreCore::on_request(ClientId client, const WaitFor& wait, TimePoint now) {
  const auto refuse = [&](const Error& why) { return Replies{{client, refusal(wait.id, why)}}; };
  if (const auto why = unfit(wait.key, {})) return refuse(*why);
  if (const auto found = values_.find(wait.key); found != values_.end())
    return {{client, Value{wait.id, found->second}}};
  if (const auto why = waits_too_much(client)) return refuse(*why);
  hold(waiting_[wait.key], {client, wait.id, end_of_wait(now, wait.within_ms)});
  return {};
}

StoreCore::Replies StoreCore::on_request(ClientId client, const Gather& gather, TimePoint now) {
  const auto refuse = [&](const Error& why) { return Replies{{client, refusal(gather.id, why)}}; };
  const auto cost = cost_of(gather.key, gather.value);
  if (const auto why = unfit(gather.key, gather.value)) return refuse(*why);
  if (const auto why = no_room(cost)) return refuse(*why);
  if (const auto why = waits_too_much(client)) return refuse(*why);
  if (gather.rank >= gather.size || gather.size > kRankLimit)
    return refuse(Error(Errc::invalid_input, fmt::format("gather {}: rank {} of {}", gather.key,
                                                         gather.rank, gather.size)));
  Gathering& all = gatherings_[gather.key];
  if (all.size == 0) {
    all.size = gather.size;
    all.generation = gather.generation;
  }
  if (const auto why = misfit(all, gather)) return refuse(*why);

  all.values.emplace(gather.rank, gather.value);
  all.charged += cost;
  total_bytes_ += cost;
  hold(all.waiters, {client, gather.id, end_of_wait(now, gather.within_ms)});
  if (all.values.size() == all.size) return complete(gather.key);
  Replies replies;
  for (const Departure& departure : departures_) give_up(all, departure, replies);
  return replies;
}

std::optional<Error> StoreCore::misfit(const Gathering& all, const Gather& gather) const {
  if (all.size != gather.size)
    return Error(Errc::invalid_input,
                 fmt::format("gather {}: rank {} says there are {} ranks, others said {}",
                             gather.key, gather.rank, gather.size, all.size));
  if (all.values.contains(gather.rank))
    return Error(Errc::exists,
                 fmt::format("gather {}: rank {} was here already", gather.key, gather.rank));
  return std::nullopt;
}

// A complete gather is forgotten, so that the same ranks can meet under the same key again.
StoreCore::Replies StoreCore::complete(const std::string& key) {
  Gathering all = std::move(gatherings_.extract(key).mapped());
  Values values;
  for (auto& [rank, value] : all.values) values.values.push_back(std::move(value));
  Replies replies;
  for (const Waiter& waiter : all.waiters) {
    values.id = waiter.id;
    answer(waiter, values, replies);
  }
  total_bytes_ -= all.charged;
  return replies;
}

StoreCore::Replies StoreCore::announce(const Departure& departure) {
  const auto same = [&](const Departure& d) {
    return d.rank == departure.rank && d.generation == departure.generation;
  };
  if (std::any_of(departures_.begin(), departures_.end(), same)) return {};
  departures_.push_back(departure);
  Replies replies;
  for (const auto& [client, held] : held_) replies.emplace_back(client, Notice{departure});
  for (auto& [key, all] : gatherings_) give_up(all, departure, replies);
  return replies;
}

bool StoreCore::Gathering::lacks(const Departure& departure) const {
  const auto rank = static_cast<std::uint32_t>(departure.rank);
  return departure.generation == generation && rank < size && !values.contains(rank);
}

// Who will not come is not waited for.
void StoreCore::give_up(Gathering& all, const Departure& departure, Replies& replies) {
  if (!all.lacks(departure)) return;
  const Error why(Errc::peer_lost, departure.text());
  for (const Waiter& waiter : std::exchange(all.waiters, {}))
    answer(waiter, refusal(waiter.id, why), replies);
}

StoreCore::Replies StoreCore::tick(TimePoint now) {
  Replies replies;
  for (auto& [key, waiters] : waiting_)
    expire(
        waiters, now, [&k = key] { return fmt::format("nobody has set {}", k); }, replies);
  std::erase_if(waiting_, nobody_waits);
  for (auto& [key, all] : gatherings_) {
    const auto why = [&k = key, &g = all] {
      return fmt::format("{}: rank {} of {} did not come", k, g.missing_ranks(), g.size);
    };
    expire(all.waiters, now, why, replies);
  }
  return replies;
}

// The reason is worked out once, however many have waited for the same thing.
template <class Why>
void StoreCore::expire(std::vector<Waiter>& waiters, TimePoint now, Why why, Replies& replies) {
  const auto late = std::stable_partition(waiters.begin(), waiters.end(),
                                          [now](const Waiter& w) { return w.until > now; });
  if (late == waiters.end()) return;
  const Error reason(Errc::timed_out, why());
  for (auto w = late; w != waiters.end(); ++w) answer(*w, refusal(w->id, reason), replies);
  waiters.erase(late, waiters.end());
}

std::string StoreCore::Gathering::missing_ranks() const {
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < size; ++rank)
    if (!values.contains(rank)) missing.push_back(rank);
  return list_of(missing);
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

}  // namespace corro::rendezvous
