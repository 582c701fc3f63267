#include "runtime/collective/member.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace corro::runtime {

using namespace std::chrono_literals;

namespace {

// The launcher tells of a worker's end within milliseconds; after this it knows of none.
constexpr auto kDoubt = 1s;

// For news of a rank that left to go around the ring, in which each must be scheduled once.
constexpr auto kHearsay = 100ms;

// For a neighbour to take the rest of a message, so that it can hear why there is no other.
constexpr auto kLastWords = 500ms;

// As far as it goes.
Outcome<bool> exhaust(Endpoint& link) {
  for (;;)
    if (auto moved = link.progress(); !moved || !*moved) return moved;
}

}  // namespace

Member::Member(Peer self, int size, std::uint64_t generation, Links links, ScheduleFor schedule_for)
    : self_(std::move(self)),
      size_(size),
      generation_(generation),
      links_(std::move(links)),
      schedule_for_(std::move(schedule_for)),
      scratch_(kPieceBytes) {}

void Member::start(const Operation& operation, MutByteView data, TimePoint now, Duration timeout) {
  if (phase_ == Phase::failed) return;
  CORRO_ASSERT(phase_ == Phase::idle);
  header_ = {.generation = generation_, .sequence = header_.sequence + 1, .operation = operation};
  timeout_ = timeout;
  schedule_ = schedule_for_(operation, self_.rank, size_);
  execution_.emplace(*schedule_, links_, header_, size_, data, scratch_);
  phase_ = Phase::working;
  until_ = now + timeout;
}

Member::Phase Member::advance(TimePoint now) {
  const bool undecided = phase_ == Phase::working || phase_ == Phase::doubting;
  if (undecided && verdict_)
    judge(now);
  else if (phase_ == Phase::working)
    work(now);
  if (phase_ == Phase::doubting && !verdict_) doubt(now);
  if (phase_ == Phase::parting) part(now);
  return phase_;
}

void Member::hear(const rendezvous::Departure& departure) {
  const Failure failure(Errc::peer_lost, departure.rank, departure.text());
  if (departure.manner == rendezvous::Departure::Manner::left)
    departed_.emplace(departure.rank, failure);
  else if (!verdict_)
    verdict_ = failure;
}

void Member::hear(const Error& error) {
  if (!verdict_) verdict_ = Failure(error);
}

std::vector<Interest> Member::interests() const {
  std::vector<Interest> all;
  for (const auto& [rank, link] : links_) all.push_back(link->interest());
  return all;
}

// Who is dead may have died of another's end, and has said so to its neighbours before it did.  If
// somebody has left, that is likely, and the word may still be on its way around.
void Member::judge(TimePoint now) {
  if (!believed_) believed_ = departed_.empty() ? now : now + kHearsay;
  for (const auto& [rank, link] : links_)
    if (const auto told = link->last_words()) return fail(*told, now);
  if (now >= *believed_) return fail(*verdict_, now);
  until_ = std::min(until_, *believed_);
}

// The execution comes last: what arrives after it has seen all is still unread, and ends the wait.
void Member::work(TimePoint now) {
  if (const auto told = told_by_neighbours()) return fail(*told, now);
  const auto done = execution_->advance();
  if (done && *done) {
    phase_ = Phase::idle;
  } else if (!done && done.error().code == Errc::closed) {
    symptom_ = done.error();
    phase_ = Phase::doubting;
    until_ = now + kDoubt;
  } else if (!done) {
    fail(done.error(), now);
  } else if (now >= until_) {
    fail(too_late(), now);
  }
}

void Member::doubt(TimePoint now) {
  if (const auto told = told_by_neighbours())
    fail(*told, now);
  else if (const auto left = departed_.find(symptom_->rank); left != departed_.end())
    fail(left->second, now);
  else if (now >= until_)
    fail(Failure(Errc::peer_lost, symptom_->rank, symptom_->text), now);
}

// Links that this step does not use are heard too: an abort may come from either side.
std::optional<Failure> Member::told_by_neighbours() {
  for (const auto& [rank, link] : links_) {
    const auto moved = exhaust(*link);
    if (!moved && moved.error().code != Errc::closed) return moved.error();
  }
  return std::nullopt;
}

void Member::fail(const Failure& why, TimePoint now) {
  failure_ = why.during(header_.operation.text());
  // Each sees the end of the store for itself.
  if (why.code != Errc::closed)
    for (const auto& [rank, link] : links_) link->abort(why);
  phase_ = Phase::parting;
  until_ = now + kLastWords;
}

// Whom the store tells, nobody else needs to.
void Member::part(TimePoint now) {
  bool told = true;
  for (const auto& [rank, link] : links_)
    if (exhaust(*link) && !link->sent()) told = false;
  if (!told && !verdict_ && now < until_) return;
  execution_.reset();
  links_.clear();
  phase_ = Phase::failed;
}

Failure Member::too_late() const {
  const Peer& peer = execution_->awaited();
  const double seconds = std::chrono::duration<double>(timeout_).count();
  return Failure(Errc::timed_out, peer.rank,
                 fmt::format("{} waited {:g} s in vain for {} in step {} of {}", self_.text(),
                             seconds, peer.text(), execution_->step() + 1, execution_->steps()));
}

}  // namespace corro::runtime
