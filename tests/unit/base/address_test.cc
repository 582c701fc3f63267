#include "base/address.h"

#include <rapidcheck/catch.h>

namespace corro {

TEST_CASE("an address is printed as it is read") {
  for (const auto* text : {"127.0.0.1:80", "0.0.0.0:0", "[::1]:65535", "[2001:db8::7]:22"}) {
    const auto address = Address::parse(text);
    REQUIRE(address);
    CHECK(address->text() == text);
  }
  CHECK(*Address::parse("[::1]:80") == Address{"::1", 80});
}

TEST_CASE("what is not a numeric address and a port is not taken for one") {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {"", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:8x",
        "localhost:80", "1.2.3:80", "1.2.3.4.5:80", "[::1", "[::1]", "::1:80", "[127.0.0.1]:80",
        "[]:80", "[:80", "[::1%lo]:80"})
    CHECK_FALSE(Address::parse(text));
  CHECK_FALSE(Address::parse("127.0.0.1\0x:80"sv));
}

TEST_CASE("an address that parses from any text prints to one that parses to the same") {
  rc::prop("for texts that look like addresses", [] {
    const auto text =
        *rc::gen::container<std::string>(rc::gen::element('1', '0', '.', ':', '[', ']', 'a'));
    if (const auto address = Address::parse(text)) {
      const auto again = Address::parse(address->text());
      RC_ASSERT(bool(again));
      RC_ASSERT(*again == *address);
    }
  });
}

}  // namespace corro
