#include "launcher/output/tag.h"

#include <catch2/catch.hpp>
#include <cstdlib>

namespace corro::launcher {

namespace {

const Speaker kSpeaker{.rank = 12, .local_rank = 4, .host = "node01", .stream = Stream::err};

std::string text_of(const std::string& format) {
  const auto tag = TagFormat::parse({"argument --tag-format", format});
  return tag ? tag->text(kSpeaker, WallTime()) : tag.error().text();
}

}  // namespace

TEST_CASE("a tag is as Horovod has it") {
  CHECK(TagFormat().text({.rank = 3}, WallTime()) == "[3]<stdout>:");
  CHECK(TagFormat().text(kSpeaker, WallTime()) == "[12]<stderr>:");
  CHECK(*TagFormat::parse({"", "[{rank}]<{stream}>:"}) == TagFormat());
}

TEST_CASE("a tag may have anything in it") {
  ::setenv("TZ", "UTC", 1);
  const auto [format, text] = GENERATE(table<std::string, std::string>({
      {"", ""},
      {"> ", "> "},
      {"{host}/{local_rank} {rank}: ", "node01/4 12: "},
      {"{{{rank}}}", "{12}"},
      {"{stream}{stream}", "stderrstderr"},
      {"{time} ", "Thu Jan  1 00:00:00 1970 "},
  }));
  CHECK(text_of(format) == text);
}

TEST_CASE("what is no tag is shown where it is wrong") {
  CHECK(text_of("{rank") ==
        "argument --tag-format: a single '{'\n  {rank\n  ^\n"
        "  Write '{{' for the character itself.");
  CHECK(text_of("a}") ==
        "argument --tag-format: a single '}'\n  a}\n   ^\n"
        "  Write '}}' for the character itself.");
  CHECK(text_of("[{rnk}]") ==
        "argument --tag-format: there is no 'rnk'\n  [{rnk}]\n   ^~~~~\n"
        "  There are {rank}, {local_rank}, {host}, {stream} and {time}.");
}

}  // namespace corro::launcher
