#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

// Packets with descriptors, over abstract unix sockets.  For exchange.cc.
namespace corro::runtime {

inline constexpr std::size_t kPacketBytes = 16 << 10;
inline constexpr std::size_t kPacketFds = 128;  // the kernel takes 253

struct Packet {
  Bytes bytes;
  std::vector<Fd> fds;
};

// False: not now.
Result<bool> send_packet(int socket, ByteView bytes, std::span<const int> fds);

// None: nothing has come.  The end of the connection is `closed`.
Result<std::optional<Packet>> receive_packet(int socket);

struct UnixAddress {
  sockaddr_un storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// "unix:@name"
Result<UnixAddress> unix_address(std::string_view text);

Result<Fd> make_packet_socket();

struct PacketListener {
  Fd socket;
  std::string address;
};

// At an address with a random name.
Result<PacketListener> listen_for_members();

}  // namespace corro::runtime
