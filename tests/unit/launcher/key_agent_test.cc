#include "launcher/pipe/key_agent.h"

#include <rapidcheck/catch.h>

namespace corro::launcher {

namespace {

using Words = std::vector<std::string>;

// Keys of up to 255 bytes, and no comments.
Bytes answer(const Words& keys) {
  Bytes out{12, 0, 0, 0, static_cast<std::uint8_t>(keys.size())};
  for (const std::string& key : keys) {
    append(out, Bytes{0, 0, 0, static_cast<std::uint8_t>(key.size())});
    append(out, view_of(key));
    append(out, Bytes{0, 0, 0, 0});
  }
  return out;
}

}  // namespace

TEST_CASE("keys of named files come first, and alone if that is wanted") {
  const Bytes all = answer({"a", "bc", "def", "ghij"});
  CHECK(arrange_keys(all, {}) == all);
  CHECK(arrange_keys(all, {{"ZGVm", "YQ=="}, false}) == answer({"a", "def", "bc", "ghij"}));
  CHECK(arrange_keys(all, {{"YmM=", "Z2hpag=="}, true}) == answer({"bc", "ghij"}));
  CHECK(arrange_keys(all, {{"AAAA"}, true}) == answer({}));
}

TEST_CASE("certificates of an agent are told from its keys") {
  using namespace std::string_literals;
  const Bytes all =
      answer({"\0\0\0\x0bssh-ed25519"s, "\0\0\0\x20ssh-ed25519-cert-v01@openssh.com"s});
  CHECK(certificates_in(all) == Words{""});
  CHECK(certificates_in(answer({"a"})).empty());
}

TEST_CASE("any answer is passed on") {
  rc::prop("that is none", [](Bytes bytes) {
    if (!bytes.empty() && bytes[0] == 12) bytes[0] = 13;
    RC_ASSERT(arrange_keys(bytes, {{"AAAA"}, true}) == bytes);
  });
  rc::prop("that is cut short", [] {
    const Bytes whole = answer({"one", "two", "three"});
    const auto n = *rc::gen::inRange<std::size_t>(0, whole.size());
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    RC_ASSERT(arrange_keys(cut, {{"b25l"}, true}) == cut);
  });
}

}  // namespace corro::launcher
