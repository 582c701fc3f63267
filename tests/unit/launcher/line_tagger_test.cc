#include "launcher/output/line_tagger.h"

#include <rapidcheck/catch.h>

#include <cstdlib>

namespace corro::launcher {

namespace {

const std::string kTag = "[3]<stdout>:";

// A tagger whose time stands still.
struct Tagger : LineTagger {
  explicit Tagger(const std::string& tag)
      : LineTagger(*TagFormat::parse({"tag", tag}), {.rank = 3}, false) {}
  std::string feed(std::string_view bytes) { return LineTagger::feed(bytes, WallTime()); }
};

// All that comes out for these pieces, the last words included.
std::string tagged(const std::vector<std::string>& pieces) {
  Tagger tagger(kTag);
  std::string out;
  for (const std::string& piece : pieces) out += tagger.feed(piece);
  return out + tagger.finish();
}

std::vector<std::string> cut_at_random(std::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const auto n = *rc::gen::inRange<std::size_t>(1, text.size() + 1);
    pieces.emplace_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return pieces;
}

// The other way round: takes one tag from the front of each line.
std::string untagged(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    RC_ASSERT(text.starts_with(kTag));
    text.remove_prefix(kTag.size());
    const auto end = text.find_first_of("\n\r");
    const auto line = text.substr(0, end == text.npos ? text.npos : end + 1);
    out += line;
    text.remove_prefix(line.size());
  }
  return out;
}

// Few letters, many ends of lines.
rc::Gen<std::string> some_output() {
  return rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab:[]<\n\r\0\xff", 11)));
}

}  // namespace

TEST_CASE("each line has a tag in front, and comes out when it is whole") {
  Tagger tagger("<t>");
  CHECK(tagger.feed("one\ntwo\nthr") == "<t>one\n<t>two\n");
  CHECK(tagger.feed("ee") == "");
  CHECK(tagger.feed("\n\n") == "<t>three\n<t>\n");
  CHECK(tagger.finish() == "");
}

TEST_CASE("a progress bar comes through as it is drawn") {
  Tagger tagger("<t>");
  CHECK(tagger.feed("10%\r20%\r30%") == "<t>10%\r<t>20%\r");
  CHECK(tagger.feed("\r\n") == "<t>30%\r<t>\n");
}

TEST_CASE("last words without a newline are not lost, and get none") {
  Tagger tagger("<t>");
  CHECK(tagger.feed("Segmentation fault") == "");
  CHECK(tagger.finish() == "<t>Segmentation fault");
  CHECK(tagger.finish() == "");
}

TEST_CASE("what comes after the last words is a new line") {
  Tagger tagger("<t>");
  tagger.feed("the worker");
  tagger.finish();
  CHECK(tagger.feed("its child\n") == "<t>its child\n");
}

TEST_CASE("a line that does not end is passed on in pieces with one tag") {
  const std::string chunk(64 << 10, 'x');
  Tagger tagger("<t>");
  std::string out;
  std::size_t fed = 0, most_held = 0;
  for (int i = 0; i < 100; ++i) {
    out += tagger.feed(chunk);
    fed += chunk.size();
    most_held = std::max(most_held, fed + 3 - std::min(fed, out.size()));
  }
  CHECK(tagger.open_line() == "<t>");
  out += tagger.feed("\nnext\n");
  CHECK_FALSE(tagger.open_line());
  CHECK(most_held <= LineTagger::kLineLimit + 3);
  CHECK(out == "<t>" + std::string(fed, 'x') + "\n<t>next\n");
}

TEST_CASE("a line of exactly the limit") {
  const std::string line(LineTagger::kLineLimit, 'x');
  Tagger tagger("<t>");
  CHECK(tagger.feed(line) == "<t>" + line);
  CHECK(tagger.finish() == "");
  CHECK(tagged({line, "\n", "a"}) == kTag + line + "\n" + kTag + "a");
}

TEST_CASE("tags do not depend on how the bytes arrive, and hide none of them") {
  rc::prop("any cut of the stream gives the same bytes", [] {
    const auto output = *some_output();
    RC_ASSERT(tagged(cut_at_random(output)) == tagged({output}));
  });
  rc::prop("without the tags it is what the worker wrote", [] {
    const auto output = *some_output();
    RC_ASSERT(untagged(tagged(cut_at_random(output))) == output);
  });
  rc::prop("what is handed on before the end is whole lines", [] {
    Tagger tagger(kTag);
    for (const std::string& piece : cut_at_random(*some_output())) {
      const std::string out = tagger.feed(piece);
      RC_ASSERT(out.empty() || out.ends_with('\n') || out.ends_with('\r'));
    }
  });
}

TEST_CASE("the time of a line is when its last bytes came") {
  ::setenv("TZ", "UTC", 1);
  LineTagger tagger(TagFormat().with_time(), {.rank = 0}, false);
  const auto at = [](int seconds) { return WallTime(std::chrono::seconds(seconds)); };
  CHECK(tagger.feed("a\nb", at(1)) == "Thu Jan  1 00:00:01 1970[0]<stdout>:a\n");
  CHECK(tagger.feed("c\n", at(62)) == "Thu Jan  1 00:01:02 1970[0]<stdout>:bc\n");
}

TEST_CASE("in colour only the tag is, and an empty tag is not") {
  LineTagger tagger(TagFormat(), {.rank = 1, .stream = Stream::err}, true);
  CHECK(tagger.feed("x\n", WallTime()) == "\x1b[32m[1]<stderr>:\x1b[0mx\n");
  LineTagger bare(*TagFormat::parse({"tag", ""}), {}, true);
  CHECK(bare.feed("x\n", WallTime()) == "x\n");
}

}  // namespace corro::launcher
