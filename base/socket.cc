#include "base/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/codec.h"
#include "base/crypto.h"

namespace corro {

namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<SocketAddress> to_system(const Address& address) {
  SocketAddress out;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (::inet_pton(AF_INET, address.ip.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(address.port);
    out.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, address.ip.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address.port);
    out.size = sizeof *v6;
  } else {
    return Error(Errc::invalid_input, fmt::format("'{}' is not an IP address", address.ip));
  }
  return out;
}

Address from_system(const SocketAddress& from) {
  char text[INET6_ADDRSTRLEN] = "";
  if (from.storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&from.storage);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    return {text, ntohs(v4->sin_port)};
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&from.storage);
  ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
  return {text, ntohs(v6->sin6_port)};
}

Result<Fd> make_socket(int family) {
  Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::from_errno("making a socket");
  return fd;
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// The outcome of a connect that did not end at once.
int pending_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

namespace {

Result<Fd> listen_at(const Address& address) {
  const auto where = to_system(address);
  if (!where) return where.error();
  auto fd = make_socket(where->storage.ss_family);
  if (!fd) return fd;
  const int on = 1;
  ::setsockopt(fd->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd->get(), where->get(), where->size) != 0 || ::listen(fd->get(), SOMAXCONN) != 0)
    return Error::from_errno("listening on " + address.text());
  return fd;
}

}  // namespace

// Begins anywhere in the range: many start at the same time, and would all try the first.
Result<Fd> listen_on(const Address& address, PortRange ports) {
  if (address.port != 0 || ports.first == 0) return listen_at(address);
  const unsigned n = ports.last - ports.first + 1U;
  const unsigned from = load_little<std::uint16_t>(random_nonce().data());
  for (unsigned i = 0; i < n; ++i) {
    const auto port = static_cast<std::uint16_t>(ports.first + (from + i) % n);
    if (auto fd = listen_at({address.ip, port})) return fd;
  }
  return Error(Errc::exists, fmt::format("no port of {} is free on {}", ports.text(), address.ip));
}

Result<Address> local_address(int fd) {
  SocketAddress out;
  out.size = sizeof out.storage;
  if (::getsockname(fd, out.get(), &out.size) != 0)
    return Error::from_errno("reading a socket's address");
  return from_system(out);
}

Result<Fd> begin_connecting(const Address& address) {
  const auto where = to_system(address);
  if (!where) return where.error();
  auto fd = make_socket(where->storage.ss_family);
  if (!fd) return fd;
  send_at_once(fd->get());
  if (::connect(fd->get(), where->get(), where->size) != 0 && errno != EINPROGRESS)
    return Error::from_errno("connecting to " + address.text());
  return fd;
}

std::optional<int> outcome_of_connecting(int fd) {
  pollfd ready{fd, POLLOUT, 0};
  if (::poll(&ready, 1, 0) <= 0) return std::nullopt;
  return pending_error(fd);
}

Result<Fd> connect_to(const Address& address, Deadline deadline) {
  const std::string doing = "connecting to " + address.text();
  auto fd = begin_connecting(address);
  if (!fd) return fd;
  auto ready = wait_for_any({{fd->get(), false, true}}, deadline);
  if (!ready) return std::move(ready.error()).during(doing);
  if (const int error = pending_error(fd->get())) return Error::from_errno(doing, error);
  return fd;
}

Result<Fd> accept_from(int listener) {
  Fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) {
    send_at_once(fd.get());
    return fd;
  }
  // A connection that was given up while it waited is not our failure.
  if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return Fd();
  return Error::from_errno("accepting a connection");
}

Result<Unit> wait_for_any(const std::vector<Interest>& interests, Deadline deadline) {
  std::vector<pollfd> fds;
  for (const Interest& i : interests)
    fds.push_back({i.fd, static_cast<short>((i.read ? POLLIN : 0) | (i.write ? POLLOUT : 0)), 0});
  for (;;) {
    const int n = ::poll(fds.data(), fds.size(), deadline.poll_timeout_ms());
    if (n > 0) return Unit{};
    if (n < 0 && errno != EINTR) return Error::from_errno("waiting");
    if (deadline.passed()) return Error(Errc::timed_out, "timed out");
  }
}

Result<Unit> write_all(int fd, ByteView bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto moved = write_some(fd, bytes);
    if (!moved) return moved.error();
    bytes = bytes.subspan(moved->bytes);
    if (!moved->again) continue;
    if (auto ready = wait_for_any({{fd, false, true}}, deadline); !ready) return ready;
  }
  return Unit{};
}

Result<Unit> prove(int fd, Proof proof, Deadline deadline) {
  if (auto sent = write_all(fd, proof.opening(), deadline); !sent) return sent;
  while (!proof.done()) {
    Bytes arrived(proof.awaited());
    const auto moved = read_some(fd, arrived);
    if (!moved) return moved.error();
    if (moved->again) {
      if (auto ready = wait_for_any({{fd, true, false}}, deadline); !ready) return ready;
      continue;
    }
    if (moved->bytes == 0)
      return Error(Errc::refused, "the other side hung up during the proof of the job key");
    Bytes reply;
    if (auto used = proof.feed(ByteView(arrived).first(moved->bytes), reply); !used)
      return used.error();
    if (auto sent = write_all(fd, reply, deadline); !sent) return sent;
  }
  return Unit{};
}

}  // namespace corro
