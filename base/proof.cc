#include "base/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/codec.h"

namespace corro {

namespace {

constexpr std::size_t kHelloBytes = 41, kAnswerBytes = 64, kFinishBytes = 32;
constexpr std::string_view kMagic = "corro";

template <std::size_t N>
std::array<std::uint8_t, N> array_at(const Bytes& bytes, std::size_t offset) {
  std::array<std::uint8_t, N> out;
  std::memcpy(out.data(), bytes.data() + offset, N);
  return out;
}

}  // namespace

Proof::Proof(Role role, const Key& key, std::string_view purpose, const Nonce& mine)
    : role_(role),
      key_(key),
      purpose_(purpose),
      mine_(mine),
      message_bytes_(role == Role::server ? kHelloBytes : kAnswerBytes) {}

Bytes Proof::opening() const {
  if (role_ == Role::server) return {};
  Bytes hello = bytes_of(kMagic);
  store_little(hello, kProtocolVersion);
  append(hello, mine_);
  return hello;
}

Result<std::size_t> Proof::feed(ByteView bytes, Bytes& reply) {
  std::size_t used = 0;
  while (!done_ && used < bytes.size()) {
    const std::size_t n = std::min(awaited(), bytes.size() - used);
    append(partial_, bytes.subspan(used, n));
    used += n;
    if (awaited() > 0) break;
    if (auto taken = on_message(reply); !taken) return taken.error();
    partial_.clear();
  }
  return used;
}

Result<Unit> Proof::on_message(Bytes& reply) {
  if (role_ == Role::client) {
    theirs_ = array_at<32>(partial_, 0);
    if (!equal_in_constant_time(array_at<32>(partial_, 32), proof_by(Role::server)))
      return wrong_key();
    append(reply, proof_by(Role::client));
    done_ = true;
  } else if (message_bytes_ == kHelloBytes) {
    if (!text_of(partial_).starts_with(kMagic))
      return Error(Errc::refused, "whoever connected does not speak Corro's protocol");
    const auto version = load_little<std::uint32_t>(partial_.data() + kMagic.size());
    if (version != kProtocolVersion)
      return Error(Errc::refused,
                   fmt::format("the other side speaks version {} of the protocol, this one {}",
                               version, kProtocolVersion));
    theirs_ = array_at<32>(partial_, kHelloBytes - 32);
    append(reply, mine_);
    append(reply, proof_by(Role::server));
    message_bytes_ = kFinishBytes;
  } else {
    if (!equal_in_constant_time(array_at<32>(partial_, 0), proof_by(Role::client)))
      return wrong_key();
    done_ = true;
  }
  return Unit{};
}

Digest Proof::proof_by(Role prover) const {
  Bytes message = bytes_of(prover == Role::client ? "corro client" : "corro server");
  store_little(message, static_cast<std::uint32_t>(purpose_.size()));
  append(message, view_of(purpose_));
  append(message, role_ == Role::client ? mine_ : theirs_);
  append(message, role_ == Role::client ? theirs_ : mine_);
  return hmac_sha256(key_, message);
}

Error Proof::wrong_key() const {
  return Error(Errc::refused, "the other side does not know this job's key");
}

}  // namespace corro
