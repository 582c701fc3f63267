#include <catch2/catch.hpp>

#include "launcher/network/knocking.h"
#include "launcher/network/reception.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

const Door kHere{"lo", "127.0.0.1", 0, 0};

// What becomes of knocking at these doorways.
std::vector<Opening> knock(Loop& loop, const Key& key, std::vector<Doorway> doorways,
                           Duration patience = 2s) {
  std::vector<Opening> out;
  Knocking knocking(loop, key, std::move(doorways), patience, [&](std::vector<Opening> openings) {
    out = std::move(openings);
    loop.stop();
  });
  loop.run();
  return out;
}

}  // namespace

TEST_CASE("a door opens to who knows the key and whose door it is") {
  Loop loop;
  const Key key = Key::random();
  const Reception reception(loop, key, "a", {kHere, {"lo", "::1", 0, 0}}, {});
  REQUIRE_FALSE(reception.doors().empty());
  for (const Door& door : reception.doors()) CHECK(door.port != 0);

  auto openings = knock(loop, key, {{"a", reception.doors()}});
  REQUIRE(openings.size() == 1);
  CHECK(openings[0].doors.size() == reception.doors().size());

  // The same address on another machine.
  openings = knock(loop, key, {{"b", {reception.doors()[0]}}});
  CHECK(openings[0].doors.empty());
  CHECK_FALSE(openings[0].trouble.empty());

  openings = knock(loop, Key::random(), {{"a", {reception.doors()[0]}}});
  CHECK(openings[0].doors.empty());
}

TEST_CASE("a door that is not there is not waited for, and one that keeps silent not for long") {
  Loop loop;
  const Key key = Key::random();
  const Reception reception(loop, key, "a", {kHere}, {});
  const auto silent = listen_on({"127.0.0.1", 0});
  const Door closed{"lo", "127.0.0.1", 1, 0},
      mute{"lo", "127.0.0.1", local_address(silent->get())->port, 0};

  CHECK(knock(loop, key, {}).empty());
  auto began = loop.now();
  auto openings = knock(loop, key, {{"a", {closed}}});
  CHECK(openings[0].trouble.find("onnection refused") != std::string::npos);
  CHECK(loop.now() - began < 1s);

  began = loop.now();
  openings = knock(loop, key, {{"a", {reception.doors()[0], mute}}}, 60s);
  CHECK(openings[0].doors == std::vector<std::uint32_t>{0});
  CHECK(loop.now() - began < 10s);

  openings = knock(loop, key, {{"a", {mute}}}, 100ms);
  CHECK(openings[0].doors.empty());
  CHECK(openings[0].trouble == "nobody answers");
}

TEST_CASE("a door that opens when it is too late changes nothing") {
  Loop loop;
  const Key key = Key::random();
  const Reception reception(loop, key, "a", {kHere}, {});
  int told = 0;
  std::optional<Knocking> knocking;
  // The patience is over before the door can be answered, and the loop goes on.
  knocking.emplace(loop, key, std::vector<Doorway>{{"a", reception.doors()}}, Duration(0),
                   [&](std::vector<Opening> openings) {
                     ++told;
                     CHECK(openings[0].doors.empty());
                   });
  const auto end = loop.at(loop.now() + 200ms, [&] { loop.stop(); });
  loop.run();
  CHECK(told == 1);
}

TEST_CASE("doors are where they may be") {
  Loop loop;
  const PortRange ports{47110, 47119};
  const Reception reception(loop, Key::random(), "a", {kHere, kHere}, ports);
  REQUIRE(reception.doors().size() == 2);
  CHECK(reception.doors()[0].port != reception.doors()[1].port);
  for (const Door& door : reception.doors()) CHECK((door.port >= 47110 && door.port <= 47119));

  // When there is no room left there is no door.
  const PortRange one{reception.doors()[0].port, reception.doors()[0].port};
  CHECK(Reception(loop, Key::random(), "b", {kHere}, one).doors().empty());
  CHECK(Reception(loop, Key::random(), "b", {{"lo", "203.0.113.7", 0, 0}}, {}).doors().empty());
}

}  // namespace corro::launcher
