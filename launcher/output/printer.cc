#include "launcher/output/printer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

// Longer than it takes to read a screen that scrolls too fast, and short for a worker that waits.
constexpr auto kPatience = 2s;

// Whether it takes more in time for what has waited since then.
bool wait_for(const Outlet& outlet, TimePoint since) {
  pollfd until{outlet.fd, POLLOUT, 0};
  int ready;
  do {
    const int timeout = outlet.patience
                            ? Deadline{since + outlet.patience->at(Clock::now())}.poll_timeout_ms()
                            : /* for ever */ -1;
    ready = ::poll(&until, 1, timeout);
  } while (ready < 0 && errno == EINTR);
  return ready != 0;
}

Error pass_over(Outlet& outlet, std::size_t bytes) {
  outlet.gap.widen(bytes);
  outlet.missed_all += bytes;
  return Error(Errc::timed_out, "nobody takes it");
}

// The descriptor may be shared with whoever started us and have been made non-blocking by them.
Result<Unit> write_all_to(Outlet& outlet, std::string_view text, TimePoint since) {
  if (outlet.gap.is_open()) return pass_over(outlet, text.size());
  while (!text.empty()) {
    const ssize_t n = ::write(outlet.fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      if (wait_for(outlet, since)) continue;
      outlet.patience->lose(Clock::now());
      return pass_over(outlet, text.size());
    } else if (errno != EINTR) {
      return Error::from_errno("writing");
    }
  }
  return Unit{};
}

// Those who come back to a terminal learn that they do not see all.
void recover(Outlet& outlet) {
  if (!outlet.gap.is_open()) return;
  const Words note{outlet.gap.note()};
  const ssize_t n = ::write(outlet.fd, note.text.data(), note.text.size());
  if (n <= 0) return;
  outlet.gap.told(static_cast<std::size_t>(n));
  if (outlet.seam) outlet.seam->wrote(note);
}

}  // namespace

std::string Gap::note() const {
  if (!rest_.empty()) return rest_;
  return fmt::format(
      "\nhorovodrun: {} bytes are not shown here, since the terminal did not take them\n", bytes_);
}

void Gap::told(std::size_t bytes_of_note) {
  const std::string now = note();
  if (rest_.empty()) bytes_ = 0;
  rest_ = now.substr(bytes_of_note);
}

Outlet Outlet::of(int standard, Fd& own) {
  if (!::isatty(standard)) return {.fd = standard, .seam = Seam(false)};
  own = Fd(::open(fmt::format("/proc/self/fd/{}", standard).c_str(),
                  O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!own) return {.fd = standard, .seam = Seam(true)};
  return {.fd = own.get(), .patience = Patience(kPatience), .seam = Seam(true)};
}

Printer::Printer() : thread_([this] { work(); }) {}

Printer::~Printer() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Printer::print(Outlet& outlet, Words words, Written written) {
  {
    const std::lock_guard lock(mutex_);
    pieces_.push_back({&outlet, std::move(words), std::move(written), Clock::now()});
  }
  changed_.notify_one();
}

Result<Unit> Printer::write(Piece& piece) {
  Words& words = piece.words;
  Outlet& outlet = *piece.outlet;
  if (words.text.empty()) return Unit{};
  recover(outlet);
  if (outlet.seam) {
    const std::string before = outlet.seam->before(words);
    outlet.seam->wrote(words);
    words.text.insert(0, before);
  }
  return write_all_to(outlet, words.text, piece.since);
}

void Printer::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closing_ || !pieces_.empty(); });
    if (pieces_.empty()) return;
    auto pieces = std::exchange(pieces_, {});
    lock.unlock();
    for (Piece& piece : pieces) piece.written(write(piece));
  }
}

}  // namespace corro::launcher
