#pragma once

#include <string>

#include "base/bytes.h"
#include "base/crypto.h"
#include "base/result.h"

namespace corro {

// Both ends of a connection show that they know the same key, before either parses anything
// else.  Every message has a fixed size.
//
//   client → server   "corro" version:u32 nonce:u8[32]                      41 bytes
//   server → client   nonce:u8[32] HMAC(key, server, purpose, nonces)       64 bytes
//   client → server   HMAC(key, client, purpose, nonces)                    32 bytes
//
// Both nonces are in both proofs, so neither side's words can be replayed; the roles are in
// them, so they cannot be reflected; the purpose is, so a proof for one service is none for
// another.  What follows on the connection is neither encrypted nor signed.
//
// Sans-IO: bytes in, bytes out.
class Proof {
 public:
  enum class Role { client, server };

  Proof(Role, const Key&, std::string_view purpose, const Nonce& mine = random_nonce());

  // What to send first; nothing for a server.
  Bytes opening() const;

  // Takes what has arrived and appends what to send.  Returns how many bytes it used: when it
  // is done, those that are left belong to whatever comes next.
  Result<std::size_t> feed(ByteView, Bytes& reply);

  bool done() const { return done_; }

  // How many bytes of the message that comes next are missing, at most 64; none when it is done.
  // Whoever reads no more than these takes nothing from the layer above.
  std::size_t awaited() const { return done_ ? 0 : message_bytes_ - partial_.size(); }

 private:
  Result<Unit> on_message(Bytes& reply);
  Digest proof_by(Role) const;
  Error wrong_key() const;

  Role role_;
  Key key_;
  std::string purpose_;
  Nonce mine_, theirs_{};
  Bytes partial_;
  std::size_t message_bytes_;  // of the message that comes next
  bool done_ = false;
};

inline constexpr std::uint32_t kProtocolVersion = 1;

}  // namespace corro
