#include "launcher/pipe/dial.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "base/socket.h"
#include "launcher/pipe/wire.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

constexpr auto kHeadStart = 250ms;  // RFC 8305, "Connection Attempt Delay"

using Answer = Result<std::vector<Address>>;

int family_of(const std::string& name) {
  return name == "inet" ? AF_INET : name == "inet6" ? AF_INET6 : AF_UNSPEC;
}

Error error_of(const std::string& name, int code) {
  const std::string doing = "resolving " + name;
  if (code == EAI_SYSTEM) return Error::from_errno(doing);
  return Error(code == EAI_AGAIN ? Errc::timed_out : Errc::not_found,
               doing + ": " + ::gai_strerror(code));
}

Answer ask_system(const std::string& name, int port, int family) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  if (const int code = ::getaddrinfo(name.c_str(), nullptr, &hints, &raw))
    return error_of(name, code);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(raw, ::freeaddrinfo);
  std::vector<Address> out;
  for (const addrinfo* at = raw; at; at = at->ai_next) {
    char ip[NI_MAXHOST];
    if (::getnameinfo(at->ai_addr, at->ai_addrlen, ip, sizeof ip, nullptr, 0, NI_NUMERICHOST) == 0)
      out.push_back({ip, static_cast<std::uint16_t>(port)});
  }
  return out;
}

template <class T>
void set(int fd, int level, int option, T value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

void watch_over(int fd, Duration silence) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(silence).count();
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<unsigned>(ms));
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
}

Deadline earlier(Deadline a, Deadline b) {
  return {std::min(a.at, b.at)};
}

// Attempts that are under way, and what became of the others.
class Race {
 public:
  void enter(const Address& address) {
    auto started = begin_connecting(address);
    if (started)
      runners_.push_back({std::move(*started), address});
    else
      last_failure_ = started.error();
  }

  bool nobody_runs() const { return runners_.empty(); }

  Error failure() const {
    return last_failure_.value_or(Error(Errc::timed_out, "no answer came in time"));
  }

  Result<std::optional<Dialled>> wait(Deadline deadline) {
    std::vector<Interest> interests;
    for (const Dialled& runner : runners_) interests.push_back({runner.socket.get(), false, true});
    const auto waited = await(interests, deadline);
    if (!waited && waited.error().code() != Errc::timed_out) return waited.error();
    for (std::size_t i = 0; i < runners_.size();) {
      const auto outcome = outcome_of_connecting(runners_[i].socket.get());
      if (outcome && *outcome == 0) return std::optional(std::move(runners_[i]));
      if (!outcome) {
        ++i;
        continue;
      }
      last_failure_ = Error::from_errno("connecting to " + runners_[i].address.text(), *outcome);
      runners_.erase(runners_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return std::optional<Dialled>();
  }

 private:
  std::vector<Dialled> runners_;
  std::optional<Error> last_failure_;
};

}  // namespace

// getaddrinfo has no deadline but the resolver's own, which may be far.  The thread that waits for
// it dies with this process.
Result<std::vector<Address>> resolve(const std::string& name, int port, const std::string& family,
                                     Deadline deadline) {
  if (is_ip(name)) return std::vector{Address{name, static_cast<std::uint16_t>(port)}};
  std::packaged_task<Answer()> task(
      [name, port, family] { return ask_system(name, port, family_of(family)); });
  auto answer = task.get_future();
  std::thread(std::move(task)).detach();
  if (answer.wait_until(deadline.at) == std::future_status::ready) return answer.get();
  return Error(Errc::timed_out, "resolving " + name + ": no answer came in time");
}

Result<Dialled> dial(const std::vector<Address>& addresses, Duration silence, Deadline deadline) {
  Race race;
  for (std::size_t next = 0;;) {
    if (next < addresses.size()) race.enter(addresses[next++]);
    if (race.nobody_runs() && next == addresses.size()) return race.failure();
    const bool more = next < addresses.size();
    auto winner = race.wait(more ? earlier(deadline, Deadline::in(kHeadStart)) : deadline);
    if (!winner) return winner.error();
    if (*winner) {
      watch_over((*winner)->socket.get(), silence);
      return std::move(**winner);
    }
    if (deadline.passed()) return race.failure();
  }
}

}  // namespace corro::launcher
