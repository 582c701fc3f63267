#include "runtime/group/verdict.h"

#include <algorithm>

namespace corro::runtime {

using namespace std::chrono_literals;

namespace {

// The launcher tells of a worker's end within milliseconds; after this it knows of none.
constexpr auto kDoubt = 1s;

// For news of a rank that exited to go around the ring, in which each must be scheduled once.
constexpr auto kHearsay = 100ms;

}  // namespace

void Verdict::hear(const rendezvous::Departure& departure) {
  const Failure failure(Errc::peer_lost, departure.rank, departure.text());
  if (departure.manner == rendezvous::Departure::Manner::left)
    exited_.emplace(departure.rank, failure);
  else if (!reported_)
    reported_ = failure;
}

void Verdict::hear(const Error& error) {
  if (!reported_) reported_ = Failure(error);
}

void Verdict::suspect(const Failure& symptom, TimePoint now) {
  if (symptom_) return;
  symptom_ = symptom;
  doubted_until_ = now + kDoubt;
}

std::optional<Failure> Verdict::exit_of(int rank) const {
  const auto exited = exited_.find(rank);
  return exited == exited_.end() ? std::nullopt : std::optional(exited->second);
}

// If a rank has exited with code 0, a death that is reported after that may well be its
// consequence, and the word of it may still be on its way around.
std::optional<Failure> Verdict::decide(TimePoint now) {
  if (reported_) {
    if (!believed_) believed_ = exited_.empty() ? now : now + kHearsay;
    return now >= *believed_ ? reported_ : std::nullopt;
  }
  if (!symptom_) return std::nullopt;
  if (auto exited = exit_of(symptom_->rank)) return exited;
  if (now >= doubted_until_) return Failure(Errc::peer_lost, symptom_->rank, symptom_->text);
  return std::nullopt;
}

std::optional<TimePoint> Verdict::wake() const {
  if (reported_) return believed_;
  if (symptom_) return doubted_until_;
  return std::nullopt;
}

}  // namespace corro::runtime
