#include "launcher/output/printer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace kolo {

namespace {

// The descriptor is shared with whoever started us and may have been made non-blocking by them.
Result<Unit> write_all_to(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd until{fd, POLLOUT, 0};
      ::poll(&until, 1, -1);
    } else if (errno != EINTR) {
      return Error::from_errno("writing");
    }
  }
  return Unit{};
}

}  // namespace

Printer::Printer() : thread_([this] { work(); }) {}

Printer::~Printer() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Printer::print(int fd, std::string text, Written written) {
  {
    const std::lock_guard lock(mutex_);
    pieces_.push_back({fd, std::move(text), std::move(written)});
  }
  changed_.notify_one();
}

void Printer::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closing_ || !pieces_.empty(); });
    if (pieces_.empty()) return;
    const Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    lock.unlock();
    piece.written(write_all_to(piece.fd, piece.text));
  }
}

}  // namespace kolo
