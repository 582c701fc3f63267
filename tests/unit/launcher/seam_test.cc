#include "launcher/output/seam.h"

#include <catch2/catch.hpp>

namespace corro::launcher {

namespace {

// A place, and all that is to be read there.
struct Place {
  explicit Place(bool on_terminal) : seam(on_terminal) {}

  void hears(const Words& words) {
    read += seam.before(words) + words.text;
    seam.wrote(words);
  }

  Seam seam;
  std::string read;
};

Words worker(int rank, std::string text) {
  static const char ranks[2] = {};
  return {std::move(text), &ranks[rank]};
}

Words launcher(std::string text) {
  return {std::move(text)};
}

}  // namespace

TEST_CASE("what the launcher says begins on a line of its own") {
  for (const bool on_terminal : {true, false}) {
    Place place(on_terminal);
    place.hears(launcher("first\n"));
    place.hears(worker(0, "[0]a\n"));
    place.hears(launcher("second\n"));
    place.hears(worker(0, "[0]last words"));
    place.hears(launcher("third\n"));
    place.hears(worker(1, "[1]50%\r"));
    place.hears(launcher("fourth\n"));
    CHECK(place.read == "first\n[0]a\nsecond\n[0]last words\nthird\n[1]50%\r\nfourth\n");
  }
}

TEST_CASE("last words without a newline stand alone at a terminal, and as they are elsewhere") {
  Place terminal(true), pipe(false);
  for (Place* place : {&terminal, &pipe}) {
    place->hears(worker(0, "[0]abc"));
    place->hears(worker(1, "[1]abc"));
  }
  CHECK(terminal.read == "[0]abc\n[1]abc");
  CHECK(pipe.read == "[0]abc[1]abc");
  CHECK(terminal.seam.inside_line());
}

TEST_CASE("a line that comes in pieces is broken only if another speaks meanwhile") {
  for (const bool on_terminal : {true, false}) {
    Place place(on_terminal);
    const Words first{"[0]aaa", worker(0, "").speaker, std::nullopt, true};
    const Words next{"aaa", first.speaker, "[0]", true};
    const Words last{"aaa\n", first.speaker, "[0]", false};
    place.hears(first);
    place.hears(next);
    place.hears(worker(1, "[1]b\n"));
    place.hears(next);
    place.hears(launcher("news\n"));
    place.hears(next);
    place.hears(last);
    place.hears(worker(1, "[1]b\n"));
    CHECK(place.read == "[0]aaaaaa\n[1]b\n[0]aaa\nnews\n[0]aaaaaa\n[1]b\n");
  }
}

TEST_CASE("at a terminal nothing stays of a progress bar behind another's line") {
  Place terminal(true), pipe(false);
  for (Place* place : {&terminal, &pipe}) {
    place->hears(worker(0, "[0]50% #####.....\r"));
    place->hears(worker(0, "[0]60% ######....\r"));
    place->hears(worker(1, "[1]short\n"));
    place->hears(worker(0, "[0]done\n"));
  }
  CHECK(pipe.read == "[0]50% #####.....\r[0]60% ######....\r[1]short\n[0]done\n");
  CHECK(terminal.read == "[0]50% #####.....\r[0]60% ######....\r\x1b[K[1]short\n[0]done\n");
}

}  // namespace corro::launcher
