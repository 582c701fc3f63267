#include "base/text.h"

#include <rapidcheck/catch.h>

#include <csignal>
#include <limits>

namespace kolo {

TEST_CASE("a whole number in decimal is read, and nothing else is") {
  CHECK(parse_int("0") == 0);
  CHECK(parse_int("-17") == -17);
  CHECK(parse_int("9223372036854775807") == std::numeric_limits<long long>::max());
  for (const auto* text : {"", " 1", "1 ", "+1", "1.0", "0x10", "ten", "9223372036854775808", "-"})
    CHECK(parse_int(text) == std::nullopt);
}

TEST_CASE("every number that is printed is read back") {
  rc::prop("for every number", [](long long n) { RC_ASSERT(parse_int(std::to_string(n)) == n); });
}

TEST_CASE("a text has one part more than separators") {
  using Parts = std::vector<std::string_view>;
  CHECK(split("a,b", ',') == Parts{"a", "b"});
  CHECK(split("a,,b", ',') == Parts{"a", "", "b"});
  CHECK(split(",", ',') == Parts{"", ""});
  CHECK(split("", ',') == Parts{""});
}

TEST_CASE("the parts of a text, joined again, are the text") {
  rc::prop("for every text", [] {
    const auto text = *rc::gen::container<std::string>(rc::gen::element('a', ','));
    std::string joined;
    for (const auto part : split(text, ',')) joined += std::string(part) + ",";
    RC_ASSERT(joined == text + ",");
  });
}

TEST_CASE("a signal is called what people call it") {
  CHECK(signal_name(SIGKILL) == "SIGKILL");
  CHECK(signal_name(SIGSEGV) == "SIGSEGV");
  CHECK(signal_name(1234) == "signal 1234");
}

}  // namespace kolo
