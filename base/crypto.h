#pragma once

#include <array>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace corro {

using Digest = std::array<std::uint8_t, 32>;
using Nonce = std::array<std::uint8_t, 32>;

// What the parts of one job have in common and nobody else knows.
struct Key {
  std::array<std::uint8_t, 32> bytes{};

  static Key random();
  static Result<Key> from_hex(std::string_view);
  std::string hex() const;
  bool operator==(const Key&) const = default;
};

Nonce random_nonce();

// Two digits for each byte.
std::string hex(ByteView);

Digest sha256(ByteView);
Digest hmac_sha256(const Key&, ByteView message);

// Good for nothing but formats of others that have it.
std::array<std::uint8_t, 20> hmac_sha1(ByteView key, ByteView message);

// OpenSSL is ours alone (linked statically, its symbols hidden), but it must not read the machine's
// openssl.cnf, which takes a millisecond, nor leave an exit handler in a process that may unload
// us.  For whoever calls a library that uses it, before all other functions here: these prepare no
// more of it than they need, which takes a third of the millisecond that all of it does.
void prepare_openssl();

// Takes the same time whatever the bytes are.
bool equal_in_constant_time(const Digest&, const Digest&);

}  // namespace corro
