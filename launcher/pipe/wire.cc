#include "launcher/pipe/wire.h"

#include <poll.h>
#include <unistd.h>

namespace kolo {

namespace {

constexpr std::size_t kPiece = 64 << 10;

short events_of(const Interest& interest) {
  return static_cast<short>((interest.read ? POLLIN : 0) | (interest.write ? POLLOUT : 0));
}

}  // namespace

Result<Unit> await(std::vector<Interest> interests, Deadline deadline) {
  // An error or a hang-up is reported without being asked for.
  std::vector<pollfd> polled{{STDIN_FILENO, 0, 0}};
  for (const Interest& i : interests) polled.push_back({i.fd, events_of(i), 0});
  for (;;) {
    const int n = ::poll(polled.data(), polled.size(), deadline.poll_timeout_ms());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::from_errno("waiting");
    if (n == 0) return Error(Errc::timed_out, "no answer came in time");
    if (polled[0].revents & (POLLHUP | POLLERR)) return Error(Errc::closed, "the launcher is gone");
    return Unit{};
  }
}

Result<Bytes> read_from(Wire& wire, Deadline deadline) {
  Bytes piece(kPiece);
  for (;;) {
    const auto moved = wire.read_some(piece);
    if (!moved) return moved.error();
    if (!moved->again) {
      piece.resize(moved->bytes);
      return piece;
    }
    if (auto waited = await(wire.interests(true, false), deadline); !waited) return waited.error();
  }
}

Result<Unit> write_to(Wire& wire, ByteView bytes, Duration patience) {
  while (!bytes.empty()) {
    const auto moved = wire.write_some(bytes.first(std::min(kPiece, bytes.size())));
    if (!moved) return moved.error();
    bytes = bytes.subspan(moved->bytes);
    if (!moved->again) continue;
    const auto waited = await(wire.interests(false, true), Deadline::in(patience));
    if (!waited) return waited.error();
  }
  return Unit{};
}

}  // namespace kolo
