#include "base/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include "base/assert.h"

namespace corro {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

template <std::size_t N>
std::array<std::uint8_t, N> random_bytes() {
  std::array<std::uint8_t, N> out;
  CORRO_ASSERT(::getentropy(out.data(), out.size()) == 0);
  return out;
}

constexpr std::uint64_t kOurs = OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT;
constexpr std::uint64_t kDigestsOnly = kOurs | OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS |
                                       OPENSSL_INIT_NO_ADD_ALL_CIPHERS |
                                       OPENSSL_INIT_NO_ADD_ALL_DIGESTS;

// The first call counts: OpenSSL does not catch up on what it was once told to leave out.
std::uint64_t prepare(std::uint64_t options) {
  static const std::uint64_t first = [options] {
    OPENSSL_init_crypto(options, nullptr);
    return options;
  }();
  return first;
}

void prepare_digests() {
  prepare(kDigestsOnly);
}

}  // namespace

void prepare_openssl() {
  CORRO_ASSERT(prepare(kOurs) == kOurs);
}

Key Key::random() {
  return {random_bytes<32>()};
}

Nonce random_nonce() {
  return random_bytes<32>();
}

Result<Key> Key::from_hex(std::string_view text) {
  Key key;
  if (text.size() != 2 * key.bytes.size())
    return Error(Errc::invalid_input, "a job key has 64 hexadecimal digits");
  for (std::size_t i = 0; i < key.bytes.size(); ++i) {
    const auto high = kHexDigits.find(text[2 * i]), low = kHexDigits.find(text[2 * i + 1]);
    if (high == kHexDigits.npos || low == kHexDigits.npos)
      return Error(Errc::invalid_input, "a job key has 64 hexadecimal digits");
    key.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return key;
}

std::string hex(ByteView bytes) {
  std::string out;
  for (const std::uint8_t byte : bytes) {
    out += kHexDigits[byte / 16];
    out += kHexDigits[byte % 16];
  }
  return out;
}

std::string Key::hex() const {
  return corro::hex(bytes);
}

Digest sha256(ByteView message) {
  prepare_digests();
  Digest out;
  unsigned size = 0;
  CORRO_ASSERT(
      EVP_Digest(message.data(), message.size(), out.data(), &size, EVP_sha256(), nullptr) &&
      size == out.size());
  return out;
}

Digest hmac_sha256(const Key& key, ByteView message) {
  prepare_digests();
  Digest out;
  unsigned size = 0;
  CORRO_ASSERT(HMAC(EVP_sha256(), key.bytes.data(), static_cast<int>(key.bytes.size()),
                    message.data(), message.size(), out.data(), &size) &&
               size == out.size());
  return out;
}

std::array<std::uint8_t, 20> hmac_sha1(ByteView key, ByteView message) {
  prepare_digests();
  std::array<std::uint8_t, 20> out;
  unsigned size = 0;
  CORRO_ASSERT(HMAC(EVP_sha1(), key.data(), static_cast<int>(key.size()), message.data(),
                    message.size(), out.data(), &size) &&
               size == out.size());
  return out;
}

bool equal_in_constant_time(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace corro
