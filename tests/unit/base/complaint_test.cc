#include "base/complaint.h"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <array>

namespace corro {

namespace {

std::string about(std::string_view content, Spot spot, std::string_view hint = {}) {
  const Error error = complaint({"hosts.txt", content, true}, spot, "wrong", hint);
  CHECK(error.code() == Errc::invalid_input);
  return error.text();
}

std::string about_argument(std::string_view content, Spot spot) {
  return complaint({"argument -H/--hosts", content}, spot, "wrong").text();
}

std::string_view nearest_of(std::string_view word, std::vector<std::string_view> candidates) {
  return nearest(word, candidates);
}

}  // namespace

TEST_CASE("a complaint shows the line and points to the spot") {
  CHECK(about("a\nb\nnode01 slots=four\nc\n", {17, 4}, "Did you mean 'slots=4'?") ==
        "hosts.txt:3:14: wrong\n"
        "  node01 slots=four\n"
        "               ^~~~\n"
        "  Did you mean 'slots=4'?");
  CHECK(about("abc", {0, 1}) == "hosts.txt:1:1: wrong\n  abc\n  ^");
  CHECK(about("a\r\nb c\r\n", {5, 1}) == "hosts.txt:2:3: wrong\n  b c\n    ^");
}

TEST_CASE("an argument has no line and column, unless it has several lines") {
  CHECK(about_argument("a:0", {2, 1}) == "argument -H/--hosts: wrong\n  a:0\n    ^");
  CHECK(about_argument("a\nb:0", {4, 1}) == "argument -H/--hosts:2:3: wrong\n  b:0\n    ^");
}

TEST_CASE("what is missing is missing after the end") {
  CHECK(about("", {0, 1}) == "hosts.txt:1:1: wrong\n  \n  ^");
  CHECK(about("ab\ncd", {2, 9}) == "hosts.txt:1:3: wrong\n  ab\n    ^");
  CHECK(about("ab", {99, 1}) == "hosts.txt:1:3: wrong\n  ab\n    ^");
  CHECK(about("abc", {1, 0}) == "hosts.txt:1:2: wrong\n  abc\n   ^");
}

TEST_CASE("a spot ends with its line") {
  CHECK(about("ab\ncd", {1, 4}) == "hosts.txt:1:2: wrong\n  ab\n   ^");
}

TEST_CASE("a byte-order mark is not part of the first line") {
  CHECK(about("\xEF\xBB\xBF"
              "a b",
              {5, 1}) == "hosts.txt:1:3: wrong\n  a b\n    ^");
}

TEST_CASE("columns are characters, and the caret stands where the terminal shows them") {
  CHECK(about("é x", {3, 1}) == "hosts.txt:1:3: wrong\n  é x\n    ^");
  CHECK(about("a：4", {1, 3}) == "hosts.txt:1:2: wrong\n  a：4\n   ^~");
  CHECK(about("：x", {3, 1}) == "hosts.txt:1:2: wrong\n  ：x\n    ^");
  CHECK(about("a\tb", {2, 1}) == "hosts.txt:1:3: wrong\n  a b\n    ^");
}

TEST_CASE("what a terminal would obey, or not show, is shown as a question mark") {
  CHECK(about(std::string_view("a\x1b[2J\0\xFF", 7), {1, 1}) ==
        "hosts.txt:1:2: wrong\n  a?[2J??\n   ^");
  CHECK(about("a\u200Bb\u202E\u0301", {1, 3}) == "hosts.txt:1:2: wrong\n  a?b??\n   ^");
  CHECK(complaint({"\x1b", "a", true}, {0, 1}, "\x07", "\n").text() == "?:1:1: ?\n  a\n  ^\n  ?");
}

TEST_CASE("a long line is cut to what surrounds the spot") {
  const std::string many(200, 'x');
  CHECK(about(many + "!" + many, {200, 1}) ==
        "hosts.txt:1:201: wrong\n"
        "  ..." +
            std::string(40, 'x') + "!" + std::string(34, 'x') +
            "...\n"
            "     " +
            std::string(40, ' ') + "^");
  CHECK(about("!" + many, {0, 200}) ==
        "hosts.txt:1:1: wrong\n  !" + std::string(77, 'x') + "...\n  ^" + std::string(77, '~'));
  CHECK(about(many, {200, 1}) == "hosts.txt:1:201: wrong\n  ..." + std::string(40, 'x') +
                                     "\n     " + std::string(40, ' ') + "^");
}

TEST_CASE("any text can be complained about, in few columns") {
  rc::prop("for any bytes and any spot", [](const std::string& content) {
    const Spot spot{*rc::gen::inRange<std::size_t>(0, content.size() + 2),
                    *rc::gen::inRange<std::size_t>(0, content.size() + 2)};
    const auto text = about(content, spot);
    RC_ASSERT(std::count(text.begin(), text.end(), '\n') == 2);
    RC_ASSERT(std::count(text.begin(), text.end(), '^') >= 1);
    for (const char c : text) RC_ASSERT(c == '\n' || static_cast<unsigned char>(c) >= ' ');
  });
}

TEST_CASE("the nearest word is the one that was meant") {
  const std::vector<std::string_view> keys = {"slots", "max_slots", "user"};
  CHECK(nearest(std::string_view("slot"), keys) == "slots");
  CHECK(nearest(std::string_view("Slots"), keys) == "slots");
  CHECK(nearest(std::string_view("solts"), keys) == "slots");
  CHECK(nearest(std::string_view("maxslots"), keys) == "max_slots");
  CHECK(nearest(std::string_view("MAX-SLOTS"), keys) == "max_slots");
  CHECK(nearest(std::string_view("usr"), keys) == "user");
  for (const std::string_view word : {"", "x", "gpus", "memory", "stols "})
    CHECK(nearest(word, keys).empty());
}

TEST_CASE("up to three letters may be inserted, dropped, replaced or swapped") {
  const std::string_view word = "abcdefghi";
  for (const char* near : {"abcdefghi", "xabcdefghi", "abcdefghixyz", "defghi", "abcxyzghi",
                           "badcfeghi", "bacdefgxh", "abcdefXYZ"})
    CHECK(nearest_of(near, {word}) == word);
  for (const char* far : {"abcdefghiwxyz", "efghi", "abwxyzghi", "badcfehgi", "ihgfedcba"})
    CHECK(nearest_of(far, {word}).empty());
}

TEST_CASE("of words equally near the first is taken, and an equal one before all") {
  CHECK(nearest_of("node3", {"node1", "node2"}) == "node1");
  CHECK(nearest_of("node2", {"node1", "NODE2", "node2"}) == "NODE2");
  CHECK(nearest_of("w3", {"w1", "w2"}).empty());
  CHECK(nearest_of("abc", {}).empty());
}

TEST_CASE("words of any length are compared") {
  const std::string limit(64, 'a'), more(65, 'a');
  CHECK(nearest_of(limit, {limit}) == limit);
  CHECK(nearest_of(more, {more}).empty());
  rc::prop("a word is nearest to itself", [](const std::string& word) {
    RC_PRE(!word.empty() && word.size() <= 64);
    RC_ASSERT(nearest_of(word, {"some", word, "others"}).size() == word.size());
  });
}

}  // namespace corro
