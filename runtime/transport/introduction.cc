#include "runtime/transport/introduction.h"

#include <array>

namespace corro::runtime {

namespace {

constexpr std::string_view kLinkPurpose = "link";
constexpr std::size_t kHelloBytes = 12;

}  // namespace

Introduction::Introduction(Fd socket, Proof::Role role, const Key& key, const Hello& mine)
    : socket_(std::move(socket)),
      proof_(role, key, kLinkPurpose),
      mine_(mine),
      outgoing_(proof_.opening()) {}

Result<Unit> Introduction::progress() {
  for (;;) {
    if (auto written = write(); !written) return written;
    if (theirs_) return Unit{};
    const auto more = read();
    if (!more) return more.error();
    if (!*more) return Unit{};
  }
}

// No further than to the end of the hello: what follows belongs to the link.
Result<bool> Introduction::read() {
  std::array<std::uint8_t, 64> buffer;
  const std::size_t awaited = proof_.done() ? kHelloBytes - hello_.size() : proof_.awaited();
  const auto moved = read_some(socket_.get(), MutByteView(buffer).first(awaited));
  if (!moved) return moved.error();
  if (moved->again) return false;
  if (moved->bytes == 0) return Error(Errc::refused, "the other side hung up");
  if (auto fed = feed(ByteView(buffer).first(moved->bytes)); !fed) return fed.error();
  return true;
}

Result<Unit> Introduction::feed(ByteView bytes) {
  if (!proof_.done()) {
    if (auto used = proof_.feed(bytes, outgoing_); !used) return used.error();
    if (proof_.done()) append(outgoing_, encode(mine_));
    return Unit{};
  }
  append(hello_, bytes);
  if (hello_.size() < kHelloBytes) return Unit{};
  auto hello = decode<Hello>(hello_);
  if (!hello) return hello.error();
  theirs_ = *hello;
  return Unit{};
}

Result<Unit> Introduction::write() {
  const auto moved = outgoing_.empty() ? Moved{} : write_some(socket_.get(), outgoing_);
  if (!moved) return moved.error();
  outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(moved->bytes));
  return Unit{};
}

}  // namespace corro::runtime
