#include "launcher/agent/output_window.h"

#include <catch2/catch.hpp>

namespace corro::launcher::agent {

namespace {

constexpr std::size_t kFrame = kOutputWindow / 8;

// Sends frames of an eighth of the window, numbered on from `first`.  Whether the last one closed
// it.
bool send(OutputWindow& window, std::uint64_t first, int frames) {
  bool closed = false;
  for (int i = 0; i < frames; ++i)
    closed = window.sent(first + static_cast<std::uint64_t>(i), kFrame);
  return closed;
}

}  // namespace

TEST_CASE("the output window closes when it is full, once") {
  OutputWindow window;
  CHECK(window.is_open());
  CHECK_FALSE(send(window, 1, 7));
  CHECK(window.is_open());
  CHECK(send(window, 8, 1));
  CHECK_FALSE(window.is_open());
  CHECK_FALSE(send(window, 9, 1));  // what was read before it closed still goes
}

TEST_CASE("the output window opens again below half, not before") {
  OutputWindow window;
  send(window, 1, 8);
  CHECK_FALSE(window.acknowledged(1));
  CHECK_FALSE(window.acknowledged(4));
  CHECK_FALSE(window.is_open());
  CHECK(window.acknowledged(5));
  CHECK(window.is_open());
  CHECK_FALSE(window.acknowledged(8));
}

TEST_CASE("an acknowledgement stands for all frames before it, and numbers may have gaps") {
  OutputWindow window;
  for (const std::uint64_t seq : {3, 10, 11, 40, 41, 42, 43, 50}) (void)window.sent(seq, kFrame);
  CHECK_FALSE(window.is_open());
  CHECK_FALSE(window.acknowledged(2));  // of a frame before all output
  CHECK_FALSE(window.acknowledged(40));
  CHECK(window.acknowledged(42));
  CHECK_FALSE(window.acknowledged(1000));
  CHECK_FALSE(send(window, 51, 7));
  CHECK(send(window, 58, 1));
}

TEST_CASE("when the launcher is gone the output window opens for good") {
  OutputWindow window;
  send(window, 1, 9);
  CHECK(window.open_for_good());
  CHECK(window.is_open());
  CHECK(window.is_for_good());
  CHECK_FALSE(send(window, 10, 100));
  CHECK(window.is_open());
  CHECK_FALSE(window.open_for_good());
}

}  // namespace corro::launcher::agent
