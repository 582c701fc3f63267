#include "launcher/pipe/key_agent.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "launcher/pipe/base64.h"

namespace corro::launcher {

namespace {

constexpr std::uint8_t kIdentitiesQuestion = 11, kIdentitiesAnswer = 12;
constexpr std::size_t kLongest = 256 << 10;  // OpenSSH's own limit
constexpr time_t kPatience_s = 30;           // with somebody who is to confirm the use of a key

std::uint32_t load_big(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         at[3];
}

void store_big(Bytes& to, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    to.push_back(static_cast<std::uint8_t>(value >> shift));
}

std::optional<ByteView> take_string(ByteView& left) {
  if (left.size() < 4 || load_big(left.data()) > left.size() - 4) return std::nullopt;
  const auto text = left.subspan(4, load_big(left.data()));
  left = left.subspan(4 + text.size());
  return text;
}

struct Identity {
  ByteView key, comment;
};

std::optional<std::vector<Identity>> identities_in(ByteView answer) {
  if (answer.size() < 5 || answer[0] != kIdentitiesAnswer) return std::nullopt;
  const auto count = load_big(answer.data() + 1);
  ByteView left = answer.subspan(5);
  std::vector<Identity> out;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto key = take_string(left);
    const auto comment = key ? take_string(left) : std::nullopt;
    if (!comment) return std::nullopt;
    out.push_back({*key, *comment});
  }
  return out;
}

bool is_certificate(ByteView key) {
  const auto kind = take_string(key);
  return kind && text_of(*kind).find("-cert-") != std::string_view::npos;
}

bool read_all(int fd, MutByteView into) {
  while (!into.empty()) {
    const auto moved = read_some(fd, into);
    if (!moved || moved->bytes == 0) return false;
    into = into.subspan(moved->bytes);
  }
  return true;
}

// A message without its length; none at the end.
std::optional<Bytes> read_message(int fd) {
  Bytes length(4);
  if (!read_all(fd, length) || load_big(length.data()) > kLongest) return std::nullopt;
  Bytes message(load_big(length.data()));
  return read_all(fd, message) ? std::optional(std::move(message)) : std::nullopt;
}

bool write_message(int fd, ByteView message) {
  Bytes framed;
  store_big(framed, message.size());
  append(framed, message);
  for (ByteView left = framed; !left.empty();) {
    const auto moved = write_some(fd, left);
    if (!moved || moved->bytes == 0) return false;
    left = left.subspan(moved->bytes);
  }
  return true;
}

void relay(const Fd& asking, const Fd& agent, const KeyChoice& choice) {
  while (const auto question = read_message(asking.get())) {
    if (!write_message(agent.get(), *question)) return;
    const auto answer = read_message(agent.get());
    if (!answer || !write_message(asking.get(), arrange_keys(*answer, choice))) return;
  }
}

Result<Fd> connect_to_agent(const std::string& path) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  if (path.size() >= sizeof where.sun_path)
    return Error(Errc::invalid_input, path + " is too long for a socket");
  std::memcpy(where.sun_path, path.data(), path.size());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
    return Error::from_errno("connecting to the ssh agent at " + path);
  const timeval patience{kPatience_s, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return fd;
}

}  // namespace

Bytes arrange_keys(ByteView answer, const KeyChoice& choice) {
  auto identities = identities_in(answer);
  if (!identities) return Bytes(answer.begin(), answer.end());
  const auto is_preferred = [&](const Identity& identity) {
    return std::find(choice.preferred.begin(), choice.preferred.end(), base64(identity.key)) !=
           choice.preferred.end();
  };
  const auto others = std::stable_partition(identities->begin(), identities->end(), is_preferred);
  if (choice.no_others) identities->erase(others, identities->end());
  Bytes out{kIdentitiesAnswer};
  store_big(out, identities->size());
  for (const Identity& identity : *identities)
    for (const ByteView text : {identity.key, identity.comment}) {
      store_big(out, text.size());
      append(out, text);
    }
  return out;
}

std::vector<std::string> certificates_in(ByteView answer) {
  std::vector<std::string> out;
  for (const Identity& identity : identities_in(answer).value_or(std::vector<Identity>()))
    if (is_certificate(identity.key)) out.emplace_back(text_of(identity.comment));
  return out;
}

std::vector<std::string> certificates_of_agent(const std::string& socket, Deadline deadline) {
  const auto agent = connect_to_agent(socket);
  if (!agent || !write_message(agent->get(), Bytes{kIdentitiesQuestion})) return {};
  pollfd until{agent->get(), POLLIN, 0};
  if (::poll(&until, 1, deadline.poll_timeout_ms()) <= 0) return {};
  const auto answer = read_message(agent->get());
  return answer ? certificates_in(*answer) : std::vector<std::string>();
}

Result<Fd> connect_key_agent(const std::string& socket, KeyChoice choice) {
  auto agent = connect_to_agent(socket);
  if (!agent) return agent;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error::from_errno("making a pair of sockets");
  Fd ours(ends[0]), theirs(ends[1]);
  std::thread([theirs = std::move(theirs), agent = std::move(*agent), choice = std::move(choice)] {
    relay(theirs, agent, choice);
  }).detach();
  return ours;
}

}  // namespace corro::launcher
