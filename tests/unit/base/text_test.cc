#include "base/text.h"

#include <rapidcheck/catch.h>

#include <csignal>
#include <limits>

namespace corro {

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

TEST_CASE("characters are read as UTF-8, and what is not is a byte") {
  CHECK(first_code_point("a") == CodePoint{'a', 1});
  CHECK(first_code_point(std::string_view("\0", 1)) == CodePoint{0, 1});
  CHECK(first_code_point("éa") == CodePoint{0xE9, 2});
  CHECK(first_code_point("：") == CodePoint{0xFF1A, 3});
  CHECK(first_code_point("\U0001F600") == CodePoint{0x1F600, 4});
  CHECK(first_code_point("\xF4\x8F\xBF\xBF") == CodePoint{0x10FFFF, 4});
  for (const char* bytes :
       {"\x80", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xEF\xBC",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"})
    CHECK(first_code_point(bytes) == CodePoint{CodePoint::kNotUtf8, 1});
}

TEST_CASE("a signal is called what people call it") {
  CHECK(signal_name(SIGKILL) == "SIGKILL");
  CHECK(signal_name(SIGSEGV) == "SIGSEGV");
  CHECK(signal_name(1234) == "signal 1234");
}

TEST_CASE("numbers in a row are a range") {
  using Numbers = std::vector<int>;
  CHECK(number_ranges(Numbers{}) == "");
  CHECK(number_ranges(Numbers{7}) == "7");
  CHECK(number_ranges(Numbers{0, 1}) == "0-1");
  CHECK(number_ranges(Numbers{0, 1, 2, 3, 8}) == "0-3,8");
  CHECK(number_ranges(Numbers{0, 2, 4, 5, 127, 128}) == "0,2,4-5,127-128");
}

TEST_CASE("a word for a shell is quoted if the shell would take it for something else") {
  CHECK(shell_word("/usr/bin/python3.11") == "/usr/bin/python3.11");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("it's $HOME") == "'it'\\''s $HOME'");
}

TEST_CASE("versions are compared by their first two numbers") {
  CHECK(parse_version("2.36") == Version{2, 36});
  CHECK(parse_version("6.18.44-cloud") == Version{6, 18});
  CHECK(parse_version("6.9") < parse_version("6.11"));
  CHECK(parse_version("5.44") < parse_version("6.1"));
  for (const auto* none : {"", "6", "6.", ".1", "six.one", "6.11-rc4"})
    CHECK(parse_version(none) == Version{});
}

}  // namespace corro
