#include "launcher/pipe/wire.h"

#include <poll.h>
#include <unistd.h>

namespace corro::launcher {

namespace {

constexpr std::size_t kPiece = 64 << 10;

short events_of(const Interest& interest) {
  return static_cast<short>((interest.read ? POLLIN : 0) | (interest.write ? POLLOUT : 0));
}

Error too_late() {
  return Error(Errc::timed_out, "no answer came in time");
}

// `interests` may be of more than is wanted: who never stops speaking aside must not keep us here.
Result<Unit> await_progress(std::vector<Interest> interests, Deadline deadline) {
  if (deadline.passed()) return too_late();
  return await(std::move(interests), deadline);
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
    if (n == 0) return too_late();
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
    const auto waited = await_progress(wire.interests(true, false), deadline);
    if (!waited) return waited.error();
  }
}

Result<Unit> write_to(Wire& wire, ByteView bytes, Duration patience) {
  auto deadline = Deadline::in(patience);
  while (!bytes.empty()) {
    const auto moved = wire.write_some(bytes.first(std::min(kPiece, bytes.size())));
    if (!moved) return moved.error();
    bytes = bytes.subspan(moved->bytes);
    if (moved->bytes > 0) deadline = Deadline::in(patience);
    if (!moved->again) continue;
    const auto waited = await_progress(wire.interests(false, true), deadline);
    if (!waited) return waited.error();
  }
  return Unit{};
}

}  // namespace corro::launcher
