#include "launcher/output/printer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <future>
#include <optional>

#include "base/fd.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

// A printer that writes to two pipes.
struct Desk {
  Pipe out = *make_pipe(), err = *make_pipe();
  std::optional<Printer> printer;

  Desk() {
    ::signal(SIGPIPE, SIG_IGN);  // as the launcher does
    printer.emplace();
  }

  Outlet to_out{.fd = out.write_end.get()}, to_err{.fd = err.write_end.get()};

  void print(Outlet& outlet, std::string text) { printer->print(outlet, {std::move(text)}); }

  // All that was printed to one of them; the printer is gone then.
  std::string all_of(Pipe& pipe) {
    printer.reset();
    pipe.write_end.reset();
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t n; (n = ::read(pipe.read_end.get(), buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(n));
    return text;
  }
};

}  // namespace

TEST_CASE("each stream gets its own text, in the order of the calls") {
  Desk desk;
  std::string numbers;
  for (int i = 0; i < 1000; ++i) {
    desk.print(i % 2 ? desk.to_err : desk.to_out, std::to_string(i) + "\n");
    if (i % 2 == 0) numbers += std::to_string(i) + "\n";
  }
  CHECK(desk.all_of(desk.out) == numbers);
  CHECK(desk.all_of(desk.err).starts_with("1\n3\n5\n"));
}

TEST_CASE("each piece is reported once it is written, and in order") {
  Desk desk;
  std::vector<int> written;
  for (int i = 0; i < 100; ++i)
    desk.printer->print(desk.to_out, {"x"},
                        [&written, i](const Result<Unit>&) { written.push_back(i); });
  CHECK(desk.all_of(desk.out) == std::string(100, 'x'));
  REQUIRE(written.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(written[i] == i);
}

TEST_CASE("whoever prints does not wait for a reader that stands still") {
  Desk desk;
  std::atomic<bool> written = false;
  desk.printer->print(desk.to_out, {std::string(1 << 20, 'x')},
                      [&](const Result<Unit>&) { written = true; });  // more than a pipe holds
  CHECK_FALSE(written);
  desk.print(desk.to_out, "y");
  auto reader = std::async(std::launch::async, [&] {
    std::size_t bytes = 0;
    std::array<char, 4096> buffer;
    for (ssize_t n; bytes <= (1 << 20) &&
                    (n = ::read(desk.out.read_end.get(), buffer.data(), buffer.size())) > 0;)
      bytes += static_cast<std::size_t>(n);
    return bytes;
  });
  CHECK(reader.get() == (1 << 20) + 1);
  desk.printer.reset();
  CHECK(written);
}

TEST_CASE("a descriptor that somebody made non-blocking is written to all the same") {
  Desk desk;
  REQUIRE(set_nonblocking(desk.out.write_end.get()));
  desk.print(desk.to_out, std::string(300'000, 'x'));
  auto reader = std::async(std::launch::async, [&] {
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t n; text.size() < 300'000 &&
                    (n = ::read(desk.out.read_end.get(), buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(n));
    return text;
  });
  CHECK(reader.get() == std::string(300'000, 'x'));
}

TEST_CASE("when the reader is gone the rest is dropped, reported as such, and nobody hangs") {
  Desk desk;
  int written = 0, dropped = 0;
  desk.out.read_end.reset();
  for (int i = 0; i < 10; ++i)
    desk.printer->print(desk.to_out, {std::string(100'000, 'x')},
                        [&](const Result<Unit>& result) { result ? ++written : ++dropped; });
  desk.print(desk.to_err, "still here");
  CHECK(desk.all_of(desk.err) == "still here");
  CHECK(written == 0);
  CHECK(dropped == 10);
}

TEST_CASE("a reader that goes away in the middle of a piece does not hold it up") {
  Desk desk;
  desk.print(desk.to_out, std::string(1 << 20, 'x'));
  std::array<char, 1000> buffer;
  REQUIRE(::read(desk.out.read_end.get(), buffer.data(), buffer.size()) == 1000);
  desk.out.read_end.reset();
  desk.print(desk.to_err, "end");
  CHECK(desk.all_of(desk.err) == "end");
}

TEST_CASE("an outlet with patience is passed over when it stands still, and told what it missed") {
  Desk desk;
  REQUIRE(set_nonblocking(desk.to_out.fd));
  desk.to_out.patience = Patience(50ms);
  desk.print(desk.to_out, std::string(1 << 20, 'x'));  // more than a pipe holds
  desk.print(desk.to_out, "missed too");
  std::promise<void> gone_by;
  desk.printer->print(desk.to_err, {}, [&](const Result<Unit>&) { gone_by.set_value(); });
  gone_by.get_future().wait();
  CHECK(desk.to_out.gap.is_open());

  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() < (64 << 10))
    text.append(buffer.data(),
                static_cast<std::size_t>(::read(desk.out.read_end.get(), buffer.data(), 4096)));
  desk.print(desk.to_out, "here again\n");
  text += desk.all_of(desk.out);
  const auto shown = text.find_first_not_of('x');
  CHECK(text.substr(shown) ==
        fmt::format("\nhorovodrun: {} bytes are not shown here, since the terminal did not take "
                    "them\nhere again\n",
                    (1 << 20) - shown + 10));
  CHECK(desk.to_out.missed_all == (1 << 20) - shown + 10);
}

TEST_CASE("an outlet that moves, but too slowly, holds up nobody for long either") {
  Desk desk;
  REQUIRE(set_nonblocking(desk.to_out.fd));
  desk.to_out.patience = Patience(50ms);
  const auto began = Clock::now();
  for (int i = 0; i < 100; ++i) desk.print(desk.to_out, std::string(64 << 10, 'x'));
  std::atomic<bool> done = false;
  desk.printer->print(desk.to_err, {}, [&](const Result<Unit>&) { done = true; });
  std::array<char, 4096> buffer;
  std::size_t taken = 0;
  for (; !done; std::this_thread::sleep_for(5ms))  // all of it would take 8 seconds
    if (const auto n = ::read(desk.out.read_end.get(), buffer.data(), buffer.size()); n > 0)
      taken += static_cast<std::size_t>(n);
  CHECK(Clock::now() - began < 4s);
  CHECK(taken > 0);
  CHECK(desk.to_out.missed_all > 5'000'000);
}

TEST_CASE("a note about a gap is told once, in however many parts, and a wider gap by another") {
  Gap gap;
  CHECK_FALSE(gap.is_open());
  gap.widen(70);
  gap.widen(7);
  const auto note = gap.note();
  CHECK(note.starts_with("\nhorovodrun: 77 bytes are not shown"));
  gap.told(10);
  gap.widen(5);
  CHECK(gap.note() == note.substr(10));
  gap.told(note.size() - 10);
  CHECK(gap.is_open());
  CHECK(gap.note().starts_with("\nhorovodrun: 5 bytes"));
  gap.told(gap.note().size());
  CHECK_FALSE(gap.is_open());
}

TEST_CASE("patience that was used up comes back bit by bit") {
  const TimePoint start{};
  Patience patience(2s);
  CHECK(patience.at(start) == 2s);
  patience.lose(start + 2s);
  CHECK(patience.at(start + 2s) == 0s);
  CHECK(patience.at(start + 12s) == 1s);
  CHECK(patience.at(start + 60s) == 2s);
}

}  // namespace corro::launcher
