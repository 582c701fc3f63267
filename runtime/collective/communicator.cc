#include "runtime/collective/communicator.h"

#include <fmt/format.h>

#include "runtime/collective/ring_schedules.h"

namespace corro::runtime {

Communicator::Communicator(Peer self) : member_(std::move(self), 1, 0, {}, ring_schedule) {}

Communicator::Communicator(const Peer& self, int size, std::uint64_t generation, Links links,
                           rendezvous::StoreClient store)
    : member_(self, size, generation, std::move(links), ring_schedule), store_(std::move(store)) {
  // What the store told while the links were made would not make its socket ready again.
  read_news();
}

Outcome<Unit> Communicator::run(const Operation& operation, MutByteView data, Duration timeout) {
  ++calls_;
  if (!status_) return run_untold(operation, data, timeout);
  std::string text = fmt::format("{}, call {}", operation.text(), calls_);
  status_.begin(text);
  auto outcome = run_untold(operation, data, timeout);
  if (!outcome) status_.say(text += ", which failed");
  status_.finish();
  return outcome;
}

Outcome<Unit> Communicator::run_untold(const Operation& operation, MutByteView data,
                                       Duration timeout) {
  member_.start(operation, data, Clock::now(), timeout);
  for (;;) {
    const auto phase = member_.advance(Clock::now());
    if (phase == Member::Phase::idle) return Unit{};
    if (phase == Member::Phase::failed) return *member_.failure();
    wait();
  }
}

void Communicator::wait() {
  auto interests = member_.interests();
  if (store_) interests.push_back({store_->notice_fd(), true, false});
  const auto ready = wait_for_any(interests, Deadline{member_.wake()});
  if (!ready && ready.error().code() != Errc::timed_out) member_.hear(ready.error());
  if (store_) read_news();
}

void Communicator::read_news() {
  const auto news = store_->take_departures();
  if (news) {
    for (const rendezvous::Departure& departure : *news) member_.hear(departure);
  } else {
    member_.hear(news.error());
    store_.reset();
  }
}

}  // namespace corro::runtime
