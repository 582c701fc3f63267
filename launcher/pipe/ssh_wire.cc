#include "launcher/pipe/ssh_wire.h"

#include <libssh/libssh.h>

#include <algorithm>
#include <array>
#include <utility>

namespace corro::launcher {

namespace {

constexpr int kStdout = 0, kStderr = 1;

}  // namespace

SshWire::SshWire(SshSession& session, ssh_channel_struct* owned)
    : session_(session), channel_(owned), event_(ssh_event_new()) {
  ssh_event_add_session(event_, session_.raw());
}

SshWire::~SshWire() {
  ssh_event_remove_session(event_, session_.raw());
  ssh_event_free(event_);
  ssh_channel_free(channel_);
}

// Lets libssh read and write what it can.  Its calls for channels do that as well, but not while
// something waits to be taken from them.
void SshWire::turn() {
  session_.acknowledge_now();
  ssh_event_dopoll(event_, 0);
  std::array<char, 4096> text;
  const int n = ssh_channel_read_nonblocking(channel_, text.data(), text.size(), kStderr);
  if (n > 0 && asides_.size() < kAsidesKept)
    asides_.append(text.data(), static_cast<std::size_t>(n));
}

bool SshWire::writes_pending() const {
  return (ssh_get_poll_flags(session_.raw()) & SSH_WRITE_PENDING) != 0;
}

Result<Moved> SshWire::read_some(MutByteView into) {
  turn();
  const int n = ssh_channel_read_nonblocking(channel_, into.data(),
                                             static_cast<std::uint32_t>(into.size()), kStdout);
  if (n > 0) return Moved{static_cast<std::size_t>(n), false};
  if (n == SSH_EOF || ssh_channel_is_eof(channel_)) return Moved{0, false};
  if (n == SSH_ERROR || !ssh_is_connected(session_.raw()))
    return Error(Errc::peer_lost, session_.error());
  return Moved{0, true};
}

// libssh would keep what it cannot send, as much as it is given; so it is given no more until that
// has gone.
Result<Moved> SshWire::write_some(ByteView bytes) {
  turn();
  // Who has said all that he has to say has ended, or is about to.
  if (!ssh_is_connected(session_.raw()) || ssh_channel_is_eof(channel_) ||
      ssh_channel_is_closed(channel_))
    return Error(Errc::closed, session_.error());
  const auto room = static_cast<std::size_t>(ssh_channel_window_size(channel_));
  if (writes_pending() || room == 0) return Moved{0, true};
  const int n = ssh_channel_write(channel_, bytes.data(),
                                  static_cast<std::uint32_t>(std::min(room, bytes.size())));
  if (n == SSH_AGAIN) return Moved{0, true};
  if (n < 0) return Error(Errc::closed, session_.error());
  return Moved{static_cast<std::size_t>(n), n == 0};
}

void SshWire::end_writing() {
  ssh_channel_send_eof(channel_);
}

// How much room the far side has is something to be read.  If it has some, what held us up before
// was our own socket.
std::vector<Interest> SshWire::interests(bool reading, bool writing) const {
  const bool room = ssh_channel_window_size(channel_) > 0;
  return {{session_.socket(), reading || writing, writes_pending() || (writing && room)}};
}

std::string SshWire::take_asides() {
  return std::exchange(asides_, {});
}

std::optional<int> SshWire::exit_code(Deadline deadline) {
  for (;;) {
    turn();
    const int code = ssh_channel_get_exit_status(channel_);
    if (code >= 0) return code;
    if (ssh_channel_is_closed(channel_) || !ssh_is_connected(session_.raw())) return std::nullopt;
    if (!await(interests(true, false), deadline)) return std::nullopt;
  }
}

}  // namespace corro::launcher
