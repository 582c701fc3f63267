#include "tests/support/store_story.h"

#include <algorithm>

namespace corro::rendezvous {

using namespace store;

namespace {

constexpr std::uint64_t kGeneration = 1;

}  // namespace

std::optional<std::string> StoreStory::play(ByteView script) {
  for (; script.size() >= 3 && !broken_; script = script.subspan(3))
    step(script[0], script[1], script[2]);
  now_ += std::chrono::hours(1);
  hear(core_.tick(now_));
  expect(pending_.empty(), "every request of a client that stayed is answered in the end");
  return broken_;
}

void StoreStory::step(std::uint8_t what, std::uint8_t who, std::uint8_t how) {
  const ClientId client = who % 5;
  const std::string key(1, static_cast<char>('a' + how % 3));
  const Bytes value(how % 7, how);
  const std::uint32_t within_ms = how;
  const auto id = ++last_id_;
  switch (what % 8) {
    case 0:
      join(client);
      break;
    case 1:
      leave(client);
      break;
    case 2:
      ask(client, Set{id, key, value});
      break;
    case 3:
      ask(client, WaitFor{id, key, within_ms});
      break;
    case 4:
    case 5:
      ask(client, Gather{id, key, who / 5u % 4, 1u + how % 3, value, within_ms, kGeneration});
      for (const auto& [call, pending] : pending_) expect_hope(pending);
      break;
    case 6:
      departed_.insert(who % 4);
      hear(core_.announce({kGeneration, who % 4, "host", "was killed",
                           how % 2 ? Departure::Manner::died : Departure::Manner::left}));
      for (const auto& [call, pending] : pending_) expect_hope(pending);
      break;
    default:
      now_ += std::chrono::milliseconds(how);
      hear(core_.tick(now_));
      for (const auto& [call, pending] : pending_)
        expect(pending.until > now_, "nobody waits longer than its time");
  }
  check_wake();
}

void StoreStory::join(ClientId client) {
  if (!here_.insert(client).second) return;
  hear(core_.joined(client));
  for (const auto rank : departed_)
    expect(told_.contains({client, rank}), "who joins late is told who went before");
}

void StoreStory::leave(ClientId client) {
  core_.left(client);
  here_.erase(client);
  std::erase_if(pending_, [client](const auto& p) { return p.first.first == client; });
  std::erase_if(told_, [client](const auto& t) { return t.first == client; });
}

void StoreStory::ask(ClientId client, const Request& request) {
  const bool here = here_.contains(client);
  if (here) std::visit([&](const auto& r) { note(client, r); }, request);
  const auto replies = core_.on(client, request, now_);
  expect(here || replies.empty(), "who is not here changes nothing and is not answered");
  hear(replies);
}

void StoreStory::note(ClientId client, const Set& set) {
  pending_[{client, set.id}] = {set.key, now_};
  set_.try_emplace(set.key, set.value);
}

void StoreStory::note(ClientId client, const WaitFor& wait) {
  pending_[{client, wait.id}] = {wait.key, now_ + std::chrono::milliseconds(wait.within_ms)};
}

void StoreStory::note(ClientId client, const Gather& gather) {
  const auto until = now_ + std::chrono::milliseconds(gather.within_ms);
  const bool too_many = waits_of(client) >= kHeldLimit;
  pending_[{client, gather.id}] = {gather.key, until, true};
  if (too_many || gather.rank >= gather.size) return;
  Group& group = groups_[gather.key];
  if (group.size > 0 && group.given.size() == group.size) group = {};  // they meet again
  if (group.size == 0) group.size = gather.size;
  if (group.size == gather.size) group.given.try_emplace(gather.rank, gather.value);
}

std::size_t StoreStory::waits_of(ClientId client) const {
  const auto of_client = [client](const auto& p) { return p.first.first == client; };
  return static_cast<std::size_t>(std::count_if(pending_.begin(), pending_.end(), of_client));
}

void StoreStory::hear(const StoreCore::Replies& replies) {
  for (const auto& [client, reply] : replies) {
    expect(here_.contains(client), "only who is here is spoken to");
    std::visit([this, c = client](const auto& r) { on(c, r); }, reply);
  }
}

StoreStory::Pending StoreStory::settled(ClientId client, std::uint64_t id) {
  const auto found = pending_.find({client, id});
  expect(found != pending_.end(), "every answer is to a question, and the only one");
  return found == pending_.end() ? Pending{} : pending_.extract(found).mapped();
}

void StoreStory::on(ClientId client, const Done& done) {
  settled(client, done.id);
}

void StoreStory::on(ClientId client, const Value& value) {
  const auto asked = settled(client, value.id);
  const auto known = set_.find(asked.key);
  expect(known != set_.end() && known->second == value.value, "a value is the first that was set");
}

void StoreStory::on(ClientId client, const Values& values) {
  const Group& group = groups_[settled(client, values.id).key];
  expect(values.values.size() == group.size && group.given.size() == group.size,
         "a gather is complete when every rank has come");
  std::vector<Bytes> expected;
  for (const auto& [rank, value] : group.given) expected.push_back(value);
  expect(values.values == expected, "what was gathered comes in rank order");
}

void StoreStory::on(ClientId client, const Refused& refused) {
  const auto asked = settled(client, refused.id);
  if (refused.code == Errc::peer_lost)
    expect(asked.gathers && !departed_.empty(), "only who departs is not waited for");
  if (refused.code == Errc::too_large)
    expect(waits_of(client) >= kHeldLimit, "only who waits for too much is refused for it");
  if (refused.code != Errc::timed_out) return;
  expect(asked.until <= now_, "nobody is told too early that its time is over");
  expect(asked.gathers || !set_.contains(asked.key), "what is set is found");
  expect(refused.text.find(asked.key) != std::string::npos, "a time-out names the key");
}

void StoreStory::on(ClientId client, const Notice& notice) {
  expect(departed_.contains(notice.departure.rank), "only who has gone is said to have gone");
  expect(told_.insert({client, notice.departure.rank}).second, "a departure is told once");
}

void StoreStory::expect_hope(const Pending& pending) {
  if (!pending.gathers) return;
  const Group& group = groups_[pending.key];
  for (const auto rank : departed_) {
    const auto r = static_cast<std::uint32_t>(rank);
    expect(r >= group.size || group.given.contains(r), "nobody waits for who has departed");
  }
}

void StoreStory::check_wake() {
  std::optional<TimePoint> first;
  for (const auto& [call, pending] : pending_)
    if (!first || pending.until < *first) first = pending.until;
  expect(core_.wake() == first, "the store wakes at the earliest deadline of all");
}

void StoreStory::expect(bool holds, const char* promise) {
  if (!holds && !broken_) broken_ = promise;
}

}  // namespace corro::rendezvous
