#include "runtime/domain/packet.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/assert.h"
#include "base/crypto.h"

namespace corro::runtime {

namespace {

constexpr std::string_view kScheme = "unix:@";

}  // namespace

Result<bool> send_packet(int socket, ByteView bytes, std::span<const int> fds) {
  iovec data{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kPacketFds * sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    CORRO_ASSERT(fds.size() <= kPacketFds);
    std::memset(control, 0, sizeof control);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  for (;;) {
    if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return true;
    if (errno == EINTR) continue;
    // ETOOMANYREFS: a user may have only so many descriptors on their way; they arrive soon.
    if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS) return false;
    const bool gone = errno == EPIPE || errno == ECONNRESET;
    Error error = Error::from_errno("handing on descriptors");
    return gone ? Error(Errc::closed, error.text()) : error;
  }
}

Result<std::optional<Packet>> receive_packet(int socket) {
  Packet packet;
  packet.bytes.resize(kPacketBytes);
  iovec data{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(253 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n;
  do n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n < 0) {
    if (errno == EAGAIN) return std::optional<Packet>();
    const bool gone = errno == ECONNRESET;
    Error error = Error::from_errno("receiving descriptors");
    return gone ? Error(Errc::closed, error.text()) : error;
  }
  for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
      packet.fds.emplace_back(fd);
    }
  }
  if (n == 0) return Error(Errc::closed, "the other side hung up");
  if ((message.msg_flags & MSG_CTRUNC) != 0)
    return Error(Errc::io, "descriptors were lost: no more may be open in this process");
  if ((message.msg_flags & MSG_TRUNC) != 0) return Error(Errc::malformed, "a packet is too long");
  packet.bytes.resize(static_cast<std::size_t>(n));
  return std::optional<Packet>(std::move(packet));
}

Result<UnixAddress> unix_address(std::string_view text) {
  UnixAddress out;
  if (!text.starts_with(kScheme) || text.size() - kScheme.size() >= sizeof out.storage.sun_path - 1)
    return Error(Errc::malformed, fmt::format("'{}' is not the address of a domain", text));
  text.remove_prefix(kScheme.size());
  out.storage.sun_family = AF_UNIX;
  std::memcpy(out.storage.sun_path + 1, text.data(), text.size());  // [0] is 0: abstract
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return out;
}

Result<Fd> make_packet_socket() {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::from_errno("making a socket for shared memory");
  return fd;
}

Result<PacketListener> listen_for_members() {
  PacketListener out;
  const auto random = random_nonce();
  out.address = fmt::format("{}corro-domain-{}", kScheme, hex(ByteView(random).first(16)));
  const auto where = unix_address(out.address);
  if (!where) return where.error();
  auto socket = make_packet_socket();
  if (!socket) return socket.error();
  out.socket = std::move(*socket);
  if (::bind(out.socket.get(), where->get(), where->size) != 0 ||
      ::listen(out.socket.get(), SOMAXCONN) != 0)
    return Error::from_errno("listening for ranks of this host");
  return out;
}

}  // namespace corro::runtime
