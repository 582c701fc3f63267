#include "launcher/network/knocking.h"

#include <algorithm>

#include "base/socket.h"
#include "launcher/network/reception.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

constexpr auto kForTheRest = 100ms;  // when every host has opened one
constexpr std::size_t kNoFrames = 1;

Address address_of(const Door& door) {
  return {door.ip, door.port};
}

}  // namespace

Knocking::Knocking(Loop& loop, const Key& key, std::vector<Doorway> doorways, Duration patience,
                   Done done)
    : loop_(loop), key_(key), doorways_(std::move(doorways)), done_(std::move(done)) {
  for (std::size_t host = 0; host < doorways_.size(); ++host) {
    openings_.push_back({doorways_[host].host, {}, {}});
    for (std::size_t door = 0; door < doorways_[host].doors.size(); ++door)
      attempts_.push_back({host, door, {}, {}, {}, false});
  }
  patience_ = loop_.at(loop_.now() + patience, [this] { end(); });
  for (Attempt& attempt : attempts_) begin(attempt);
  end_if_settled();
}

void Knocking::begin(Attempt& attempt) {
  auto socket = begin_connecting(address_of(doorways_[attempt.host].doors[attempt.door]));
  if (!socket) return failed(attempt, socket.error().text());
  attempt.socket = std::move(*socket);
  attempt.connecting =
      loop_.watch(attempt.socket.get(), Ready::write, [this, &attempt] { connected(attempt); });
}

void Knocking::connected(Attempt& attempt) {
  attempt.connecting = {};
  const Door& door = doorways_[attempt.host].doors[attempt.door];
  if (const int error = outcome_of_connecting(attempt.socket.get()).value_or(0)) {
    failed(attempt, Error::from_errno("connecting to " + address_of(door).text(), error).text());
    return end_if_settled();
  }
  attempt.channel = std::make_unique<Channel>(
      loop_, std::move(attempt.socket), Fd(), kNoFrames,
      Proof(Proof::Role::client, key_, door_purpose(doorways_[attempt.host].host)),
      Channel::Events{.on_frame = [](const Frame&) -> Result<Unit> { return Unit{}; },
                      .on_end =
                          [this, &attempt](const Error& why) {
                            if (!attempt.over) failed(attempt, why.text());
                            end_if_settled();
                          },
                      .on_proved = [this, &attempt] { opened(attempt); }});
}

void Knocking::opened(Attempt& attempt) {
  attempt.over = true;
  if (!done_) return;  // too late
  openings_[attempt.host].doors.push_back(static_cast<std::uint32_t>(attempt.door));
  const bool all = std::none_of(openings_.begin(), openings_.end(),
                                [](const Opening& o) { return o.doors.empty(); });
  if (all && !std::exchange(hurried_, true))
    patience_ = loop_.at(loop_.now() + kForTheRest, [this] { end(); });
  end_if_settled();
}

void Knocking::failed(Attempt& attempt, const std::string& why) {
  attempt.over = true;
  if (done_) openings_[attempt.host].trouble = why;
}

void Knocking::end_if_settled() {
  if (std::all_of(attempts_.begin(), attempts_.end(), [](const Attempt& a) { return a.over; }))
    end();
}

// Told from the loop: a channel may not be destroyed inside its own event.
void Knocking::end() {
  patience_ = {};
  if (!done_) return;
  for (Opening& opening : openings_)
    if (opening.doors.empty() && opening.trouble.empty()) opening.trouble = "nobody answers";
  loop_.post(
      [done = std::exchange(done_, {}), openings = std::move(openings_)] { done(openings); });
}

}  // namespace corro::launcher
