#include "launcher/pipe/bootstrap.h"

#include <rapidcheck/catch.h>

#include "launcher/pipe/copy.h"
#include "launcher/pipe/program.h"

namespace corro::launcher {

namespace {

using agent::Barrier;
using agent::Unreached;

const std::string kHail = "corro-0123456789abcdef";

Bootstrap conversation() {
  return Bootstrap(kHail, {"/opt/horovodrun", "abc", 1000, 77, "x86_64"});
}

Bootstrap::Step hear(Bootstrap& talk, const std::string& text) {
  return talk.hear(view_of(text));
}

template <class T>
bool is(const Bootstrap::Step& step) {
  return std::holds_alternative<T>(step);
}

}  // namespace

TEST_CASE("what a login shell says is passed over") {
  auto talk = conversation();
  CHECK(is<Bootstrap::Listen>(hear(talk, "Welcome!\ncorro-\n" + kHail + "\n")));
  CHECK(is<Bootstrap::Listen>(hear(talk, "no end\n" + kHail + " HAIL\n")));
  const auto step = hear(talk, "\n" + kHail + " GUARD\nframes");
  REQUIRE(is<Bootstrap::Frames>(step));
  CHECK(text_of(std::get<Bootstrap::Frames>(step).first) == "frames");
}

TEST_CASE("pieces make no difference") {
  const std::string stream = "hi\n\n" + kHail + " HAIL\n\n" + kHail + " NEED x86_64 glibc 2.36\n";
  auto talk = conversation();
  for (std::size_t i = 0; i + 1 < stream.size(); ++i)
    CHECK(is<Bootstrap::Listen>(hear(talk, stream.substr(i, 1))));
  const auto step = hear(talk, "\n");
  REQUIRE(is<Bootstrap::Need>(step));
  CHECK(std::get<Bootstrap::Need>(step).machine == "x86_64");
  CHECK(std::get<Bootstrap::Need>(step).libc == "glibc 2.36");
}

TEST_CASE("a shell that knows little still says what it needs") {
  auto talk = conversation();
  const auto step = hear(talk, kHail + " NEED  \n");
  REQUIRE(is<Bootstrap::Need>(step));
  CHECK(std::get<Bootstrap::Need>(step).libc.empty());
}

TEST_CASE("a shell that writes without end is not listened to for ever") {
  auto talk = conversation();
  Bootstrap::Step step;
  int told = 0;
  while (is<Bootstrap::Listen>(step = hear(talk, std::string(1000, 'y')))) ++told;
  CHECK(told == 65);
  CHECK(std::get<Unreached>(step).kind == Barrier::shell);
}

TEST_CASE("ends are explained by how far it came and what was said") {
  auto talk = conversation();
  hear(talk, "only for mail\n");
  auto why = talk.explain_end(3, "");
  CHECK(why.kind == Barrier::shell);
  CHECK(why.why ==
        "what runs there at login ended with code 3 before it took a command from its input: it "
        "said 'only for mail'");
  hear(talk, kHail + " HAIL\n");
  CHECK(talk.explain_end(127, "sh: no\n").why ==
        "the shell there ended with code 127 before the agent ran: it said 'only for mail'; on "
        "stderr 'sh: no'");
  CHECK(std::get<Unreached>(hear(talk, kHail + " NOWHERE\n")).kind == Barrier::staging);
  CHECK(std::get<Unreached>(hear(talk, kHail + " SPOILT\n")).kind == Barrier::staging);
}

TEST_CASE("a program that does not run there is named, and a damaged copy is thrown away") {
  const auto end_of = [](const std::string& path) {
    auto talk = conversation();
    hear(talk, kHail + " HAIL\n" + kHail + " RUN " + path + "\n");
    return talk.explain_end(126, "cannot execute binary file");
  };
  const auto copy = end_of("/a b/corro/horovodrun-abc");
  CHECK(copy.kind == Barrier::machine);
  CHECK(copy.fix == "rm '/a b/corro/horovodrun-abc'");
  CHECK(copy.why ==
        "this program, there /a b/corro/horovodrun-abc, does not run: it ended with code 126: it "
        "said nothing; on stderr 'cannot execute binary file'");
  CHECK(end_of("/opt/horovodrun").fix == "/opt/horovodrun --version");
}

TEST_CASE("what was made for other machines stays here") {
  const std::string program =
      "\x7f"
      "ELF GLIBC_2.4 GLIBC_2.36\nGLIBC_2.3.4 GLIBC_2.x GLIBC_PRIVATE";
  const auto fits = [&](const char* machine, const char* libc) {
    const auto why = misfit({machine, libc}, "x86_64", view_of(program));
    return why ? why->why : "";
  };
  CHECK(fits("x86_64", "glibc 2.36").empty());
  CHECK(fits("x86_64", "glibc 2.41").empty());
  CHECK(fits("x86_64", "").empty());
  CHECK(fits("", "").empty());
  CHECK(fits("x86_64", "glibc 2.9") == "it has glibc 2.9, and this program needs 2.36 or newer");
  CHECK(fits("x86_64", "glibc 504444444444444444.44").empty());  // too long to be multiplied
  CHECK(fits("aarch64", "glibc 2.41").find("it is aarch64") == 0);
}

TEST_CASE("a script survives any path") {
  const Bootstrap talk(kHail, {"/it's a\nplace", "abc", 1, 2, "x86_64"});
  CHECK(talk.script().find("path='/it'\\''s a\nplace'") != std::string::npos);
  CHECK(talk.script().back() == '\n');
}

TEST_CASE("no stream breaks the conversation") {
  rc::prop("any bytes in any pieces", [](const std::vector<Bytes>& pieces) {
    auto talk = conversation();
    for (const Bytes& piece : pieces)
      if (!is<Bootstrap::Listen>(talk.hear(piece))) break;
    RC_ASSERT(!talk.explain_end(1, "x").why.empty());
  });
}

TEST_CASE("a program is known by what its linker wrote") {
  const auto self = find_program_file("");
  REQUIRE(self);
  CHECK(self->id.size() >= 32);
  CHECK(self->id.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(find_program_file("/nowhere/to/be/found").error().code() == Errc::io);
  rc::prop("any beginning is read", [](const Bytes& head) {
    Bytes elf = bytes_of(
        "\x7f"
        "ELF\x02\x01\x01");
    append(elf, head);
    (void)build_id(elf);
    (void)build_id(head);
  });
}

TEST_CASE("only whole frames go up") {
  Bytes stream;
  append_frame(stream, {65, 1, view_of("one")});
  const auto first = stream.size();
  append_frame(stream, {66, 2, view_of("")});
  for (std::size_t n = 0; n < stream.size(); ++n)
    CHECK(*whole_frames(ByteView(stream).first(n)) == (n < first ? 0 : first));
  CHECK(*whole_frames(stream) == stream.size());
  CHECK(whole_frames(view_of("Last login: today")).error().code() == Errc::malformed);
}

}  // namespace corro::launcher
