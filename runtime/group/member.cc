#include "runtime/group/member.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace corro::runtime {

using namespace std::chrono_literals;

namespace {

// For a neighbour to take the rest of a message, so that it can hear why there is no other.
constexpr auto kLastWords = 500ms;

// As far as it goes.
Outcome<bool> exhaust(Endpoint& link) {
  for (;;)
    if (auto moved = link.progress(); !moved || !*moved) return moved;
}

}  // namespace

Member::Member(Roster roster, int self, std::unique_ptr<Links> links)
    : roster_(std::move(roster)), self_(self), links_(std::move(links)) {}

void Member::start(Running& running, TimePoint now, Duration timeout) {
  if (phase_ == Phase::failed) return;
  CORRO_ASSERT(phase_ == Phase::idle);
  timeout_ = timeout;
  running_ = &running;
  phase_ = Phase::working;
  until_ = now + timeout;
}

Member::Phase Member::advance(TimePoint now) {
  const bool undecided = phase_ == Phase::working || phase_ == Phase::doubting;
  if (undecided && (verdict_.reported() || phase_ == Phase::doubting))
    judge(now);
  else if (phase_ == Phase::working)
    work(now);
  if (phase_ == Phase::parting) part(now);
  return phase_;
}

TimePoint Member::wake(TimePoint now) const {
  TimePoint first = until_;
  if (links_->making()) first = std::min(first, now + kLinkLook);
  const bool undecided = phase_ == Phase::working || phase_ == Phase::doubting;
  if (const auto wake = verdict_.wake(); undecided && wake) first = std::min(first, *wake);
  return first;
}

void Member::add_interests(std::vector<Interest>& all) const {
  for (const Endpoint* link : links_->open()) all.push_back(link->interest());
  links_->add_interests(all);
}

// What a neighbour said counts more than the store's report or a broken link.
void Member::judge(TimePoint now) {
  auto told = verdict_.reported() ? told_before_the_end() : told_by_neighbours();
  if (!told) told = told_in_memory();
  if (told)
    fail(*told, now);
  else if (const auto missed = exited_in_memory())
    fail(*missed, now);
  else if (const auto decided = verdict_.decide(now))
    fail(*decided, now);
}

// The operation comes last: what arrives after it has seen all is still unread, and ends the wait.
void Member::work(TimePoint now) {
  if (const auto told = told_by_neighbours()) return fail(*told, now);
  if (const auto wrong = early_mismatch()) return fail(*wrong, now);
  const auto done = running_->advance();
  if (done && *done) {
    running_ = nullptr;
    phase_ = Phase::idle;
  } else if (!done && done.error().code == Errc::closed) {
    verdict_.suspect(done.error(), now);
    phase_ = Phase::doubting;
    judge(now);
  } else if (!done) {
    fail(done.error(), now);
  } else if (const auto exited = exited_in_memory()) {
    fail(*exited, now);
  } else if (now >= until_) {
    fail(too_late(), now);
  }
}

// Links that this step does not use are heard too: an abort may come from any of them.
std::optional<Failure> Member::told_by_neighbours() {
  for (Endpoint* link : links_->open()) {
    const auto moved = exhaust(*link);
    if (!moved && moved.error().code != Errc::closed) return moved.error();
  }
  return std::nullopt;
}

// Ranks in different operations may wait for each other on different links: a message of this
// operation's number with another digest shows that, wherever it arrives.
std::optional<Failure> Member::early_mismatch() {
  const auto links = links_->open();
  if (links.empty()) return std::nullopt;
  const auto identity = running_->identity();
  for (Endpoint* link : links) {
    const auto early = link->early();
    if (!early || early->header.tag.sequence != identity.sequence) continue;
    if (early->header.digest != identity.digest)
      return mismatch(peer(self_), running_->description(), link->peer(), early->description);
  }
  return std::nullopt;
}

std::optional<Failure> Member::told_in_memory() {
  if (!running_->waits_in_memory()) return std::nullopt;
  const auto done = running_->advance();
  if (done || done.error().code == Errc::closed) return std::nullopt;
  return done.error();
}

// What a rank wrote to shared memory before it exited is there; what it has not written will not
// come.  Only an operation that has gone as far as it can knows which rank it waits for.
std::optional<Failure> Member::exited_in_memory() {
  if (!verdict_.any_exit() || !running_->waits_in_memory()) return std::nullopt;
  if (const auto done = running_->advance(); !done || !running_->waits_in_memory())
    return std::nullopt;
  return verdict_.exit_of(peer(running_->awaited()).rank);
}

std::optional<Failure> Member::told_before_the_end() {
  for (Endpoint* link : links_->open())
    if (auto told = link->last_words()) return told;
  return std::nullopt;
}

void Member::fail(const Failure& why, TimePoint now) {
  if (phase_ == Phase::parting || phase_ == Phase::failed) return;
  failure_ = running_ ? why.during(running_->description()) : why;
  if (running_) running_->abort(why);
  // Each rank sees the end of the store for itself.
  if (why.code != Errc::closed)
    for (Endpoint* link : links_->open()) link->abort(why);
  phase_ = Phase::parting;
  until_ = now + kLastWords;
}

// Ranks that the store has notified need no message from us.
void Member::part(TimePoint now) {
  bool told = true;
  for (Endpoint* link : links_->open())
    if (exhaust(*link) && !link->sent()) told = false;
  if (!told && !verdict_.reported() && now < until_) return;
  running_ = nullptr;
  links_->close();
  phase_ = Phase::failed;
}

Failure Member::too_late() const {
  const Peer& awaited = peer(running_->awaited());
  const double seconds = std::chrono::duration<double>(timeout_).count();
  return Failure(Errc::timed_out, awaited.rank,
                 fmt::format("{} waited {:g} s in vain for {}{}", peer(self_).text(), seconds,
                             awaited.text(), running_->where()));
}

}  // namespace corro::runtime
