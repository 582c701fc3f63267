#include "runtime/wiring/handshake.h"

#include <array>

namespace corro::runtime {

namespace {

constexpr std::string_view kLinkPurpose = "link";
constexpr std::size_t kHelloBytes = 32;

}  // namespace

Handshake::Handshake(Fd socket, const Key& key, const Hello& mine)
    : socket_(std::move(socket)),
      dials_(true),
      proof_(Proof::Role::client, key, kLinkPurpose),
      mine_(mine),
      outgoing_(proof_.opening()) {}

Handshake::Handshake(Fd socket, const Key& key, std::uint64_t generation, std::uint64_t session,
                     int self)
    : socket_(std::move(socket)),
      dials_(false),
      proof_(Proof::Role::server, key, kLinkPurpose),
      mine_{generation, session, 0, self, 0} {}

Result<Unit> Handshake::progress() {
  for (;;) {
    if (auto written = write(); !written) return written;
    if (theirs_) return Unit{};
    const auto more = read();
    if (!more) return more.error();
    if (!*more) return Unit{};
  }
}

// No further than to the end of the hello: what follows belongs to the link.
Result<bool> Handshake::read() {
  std::array<std::uint8_t, 64> buffer;
  const std::size_t awaited = proof_.done() ? kHelloBytes - hello_.size() : proof_.awaited();
  const auto moved = read_some(socket_.get(), MutByteView(buffer).first(awaited));
  if (!moved) return moved.error();
  if (moved->again) return false;
  if (moved->bytes == 0) return Error(Errc::closed, "the other side closed the connection");
  if (auto fed = feed(ByteView(buffer).first(moved->bytes)); !fed) return fed.error();
  return true;
}

Result<Unit> Handshake::feed(ByteView bytes) {
  if (!proof_.done()) {
    if (auto used = proof_.feed(bytes, outgoing_); !used) return used.error();
    if (proof_.done() && dials_) append(outgoing_, encode(mine_));
    return Unit{};
  }
  append(hello_, bytes);
  if (hello_.size() < kHelloBytes) return Unit{};
  const auto hello = decode<Hello>(hello_);
  if (!hello) return hello.error();
  theirs_ = *hello;
  if (!dials_) {
    mine_.group = theirs_->group;
    mine_.to = theirs_->from;
    append(outgoing_, encode(mine_));
  }
  return write();
}

Result<Unit> Handshake::write() {
  const auto moved = outgoing_.empty() ? Moved{} : write_some(socket_.get(), outgoing_);
  if (!moved) return moved.error();
  outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(moved->bytes));
  return Unit{};
}

}  // namespace corro::runtime
