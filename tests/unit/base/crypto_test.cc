#include "base/crypto.h"

#include <rapidcheck/catch.h>

namespace corro {

namespace {

Key key_of(std::string_view start) {
  Key key;  // the rest is zero
  std::copy(start.begin(), start.end(), key.bytes.begin());
  return key;
}

std::string hex(const Digest& digest) {
  return Key{digest}.hex();
}

std::string bytes_from(char first, char last) {
  std::string out;
  for (char c = first; c <= last; ++c) out += c;
  return out;
}

}  // namespace

// RFC 4231, cases 1 to 4.  HMAC fills a short key with zeros itself, so these keys of 20, 4, 20
// and 25 bytes are the same as ours of 32.
TEST_CASE("HMAC-SHA256 gives what RFC 4231 says") {
  const auto hmac = [](const std::string& key, const std::string& message) {
    return hex(hmac_sha256(key_of(key), view_of(message)));
  };
  CHECK(hmac(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')) ==
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  CHECK(hmac(bytes_from(1, 25), std::string(50, '\xcd')) ==
        "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
}

// Expected values by Python's hmac.
TEST_CASE("HMAC-SHA256 takes a full key, and messages that are empty or long") {
  const Key key = key_of(bytes_from(0, 31));
  CHECK(hex(hmac_sha256(key, {})) ==
        "d38b42096d80f45f826b44a9d5607de72496a415d3f4a1a8c88e3bb9da8dc1cb");
  CHECK(hex(hmac_sha256(key, Bytes(1000, 0x5a))) ==
        "bdaa6c0112541cbebe4d0ec4250e5e5bdee0bfc08bc34a788dd807e46f916003");
}

// RFC 2202, case 2.
TEST_CASE("HMAC-SHA1 gives what RFC 2202 says") {
  CHECK(hex(hmac_sha1(view_of("Jefe"), view_of("what do ya want for nothing?"))) ==
        "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
}

TEST_CASE("a key written in hexadecimal is the same key when read") {
  rc::prop("for every key", [](const std::array<std::uint8_t, 32>& bytes) {
    const auto back = Key::from_hex(Key{bytes}.hex());
    RC_ASSERT(bool(back));
    RC_ASSERT(back->bytes == bytes);
  });
  CHECK(key_of("\x01\xAB").hex() == "01ab" + std::string(60, '0'));
}

TEST_CASE("what is not 64 lower-case hexadecimal digits is not a key") {
  const std::string good(64, 'a');
  REQUIRE(Key::from_hex(good));
  for (const char bad : {'g', 'A', ' ', '-', '\0', '\n'})
    for (std::size_t at = 0; at < good.size(); ++at) {
      std::string text = good;
      text[at] = bad;
      CHECK_FALSE(Key::from_hex(text));
    }
  for (const std::string& text : {std::string(), good.substr(1), good + "a", "0x" + good})
    CHECK_FALSE(Key::from_hex(text));
}

TEST_CASE("keys and nonces are never the same twice") {
  CHECK(Key::random() != Key::random());
  CHECK(random_nonce() != random_nonce());
}

TEST_CASE("digests are equal when every bit is") {
  const Digest digest = random_nonce();
  CHECK(equal_in_constant_time(digest, Digest(digest)));
  for (std::size_t bit = 0; bit < 8 * digest.size(); ++bit) {
    Digest other = digest;
    other[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    CHECK_FALSE(equal_in_constant_time(digest, other));
  }
}

}  // namespace corro
