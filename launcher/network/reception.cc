#include "launcher/network/reception.h"

namespace corro::launcher {

namespace {

// Those who have not gone yet.  When there are more, the one that came first goes.  Thousands of
// hosts knock at the launcher at the same time.
constexpr std::size_t kVisitors = 16384;
constexpr std::size_t kNoFrames = 1;  // is as long as a frame may be that nobody sends

}  // namespace

std::string door_purpose(const std::string& host) {
  return "corro door of " + host;
}

Reception::Reception(Loop& loop, const Key& key, const std::string& host,
                     std::vector<Door> addresses, PortRange ports)
    : loop_(loop),
      key_(key),
      purpose_(door_purpose(host)),
      visitors_(std::make_shared<std::map<std::uint64_t, std::unique_ptr<Channel>>>()) {
  for (Door& door : addresses) {
    auto fd = listen_on({door.ip, 0}, ports);
    const auto address = fd ? local_address(fd->get()) : Result<Address>(fd.error());
    if (!address) continue;
    door.port = address->port;
    doors_.push_back(std::move(door));
    listeners_.push_back({std::move(*fd), {}});
    const int listener = listeners_.back().fd.get();
    listeners_.back().watch =
        loop_.watch(listener, Ready::read, [this, listener] { let_in(listener); });
  }
}

void Reception::let_in(int listener) {
  auto socket = accept_from(listener);
  if (!socket || !*socket) return;
  if (visitors_->size() >= kVisitors) visitors_->erase(visitors_->begin());
  const auto number = ++last_visitor_;
  const auto forget = [&loop = loop_, number, all = std::weak_ptr(visitors_)](const Error&) {
    loop.post([number, all] {
      if (const auto visitors = all.lock()) visitors->erase(number);
    });
  };
  (*visitors_)[number] = std::make_unique<Channel>(
      loop_, std::move(*socket), Fd(), kNoFrames, Proof(Proof::Role::server, key_, purpose_),
      Channel::Events{.on_frame = [](const Frame&) -> Result<Unit> {
                        return Error(Errc::malformed, "there is nothing behind this door");
                      },
                      .on_end = forget,
                      .on_proved = {}});
}

}  // namespace corro::launcher
