#include "launcher/job/feeder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "launcher/agent/protocol.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

// How long a background job leaves the terminal alone.
constexpr auto kBackground = 500ms;

}  // namespace

Feeder::Feeder(Loop& loop, int fd, const std::vector<int>& ranks, Send send)
    : loop_(loop), fd_(fd), send_(std::move(send)) {
  for (const int rank : ranks) readers_[rank];
}

void Feeder::started(int rank) {
  if (const auto reader = readers_.find(rank); reader != readers_.end()) reader->second.here = true;
  go_on();
}

void Feeder::taken(int rank, std::size_t bytes) {
  if (const auto reader = readers_.find(rank); reader != readers_.end())
    reader->second.under_way -= std::min(bytes, reader->second.under_way);
  go_on();
}

void Feeder::gone(int rank) {
  readers_.erase(rank);
  go_on();
}

std::size_t Feeder::room() const {
  std::size_t room = agent::kInputWindow;
  for (const auto& [rank, reader] : readers_)
    room = reader.here ? std::min(room, agent::kInputWindow - reader.under_way) : 0;
  return readers_.empty() ? 0 : std::min(room, agent::kInputBytes);
}

void Feeder::go_on() {
  if (ended_ || room() == 0)
    watch_ = {};
  else if (!watch_)
    watch_ = loop_.watch(fd_, Ready::read, [this] { read_once(); });
}

// The descriptor is shared with whoever started us, so it is not made non-blocking.
void Feeder::read_once() {
  std::array<std::uint8_t, agent::kInputBytes> buffer;
  const ssize_t n = ::read(fd_, buffer.data(), room());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n < 0 && errno == EIO) {  // the terminal is another's
    watch_ = {};
    again_ = loop_.at(loop_.now() + kBackground, [this] { go_on(); });
    return;
  }
  ended_ = n <= 0;
  const ByteView bytes = ByteView(buffer).first(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  for (auto& [rank, reader] : readers_) {
    reader.under_way += bytes.size();
    send_(rank, bytes, ended_);
  }
  go_on();
}

}  // namespace corro::launcher
