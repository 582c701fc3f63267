#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/codec.h"
#include "base/fd.h"
#include "base/fork_mark.h"
#include "base/result.h"
#include "base/time.h"

namespace corro {

// What a worker said last about what it does.
struct Status {
  std::string text;             // "allreduce(sum of 64 f64), call 7": under way, or the last one
  std::uint64_t begun = 0;      // operations
  std::uint64_t finished = 0;   // of those
  std::int64_t changed_ns = 0;  // when it was said, on the monotonic clock of its machine

  bool said_anything() const { return changed_ns != 0; }
  bool under_way() const { return begun > finished; }
  TimePoint changed() const { return TimePoint(std::chrono::nanoseconds(changed_ns)); }

  CORRO_FIELDS(text, begun, finished, changed_ns)
  bool operator==(const Status&) const = default;
};

inline constexpr std::size_t kStatusTextBytes = 200;
// By this a worker learns the number of the descriptor, and which of the pages there is its own.
inline constexpr const char* kStatusVariable = "CORRO_STATUS";

namespace status_page {
struct Page;

// Owns a shared mapping of a file of them.
class Mapping {
 public:
  explicit Mapping(void* at = nullptr) : at_(at) {}
  Mapping(Mapping&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  ~Mapping();
  Page& page(std::size_t index) const;
  explicit operator bool() const { return at_; }

 private:
  void* at_;
};

// A file of pages, which can neither grow nor shrink.
struct Sheet {
  Fd fd;
  Mapping pages;
};
}  // namespace status_page

// A page of memory that a worker writes and its agent reads, also when the worker hangs and after
// its death.  This is the agent's side.  What it reads is always one whole thing that was said,
// wherever in the middle of a word the worker died; what a worker that is not ours may scribble
// there is bounded and printable.
class StatusPage {
 public:
  int fd() const { return sheet_->fd.get(); }  // to be handed to the worker
  std::string handle(int fd) const;            // for kStatusVariable, if that is its number there
  Status read() const;

 private:
  friend class StatusBoard;
  StatusPage(std::shared_ptr<const status_page::Sheet> sheet, std::size_t index)
      : sheet_(std::move(sheet)), index_(index) {}

  std::shared_ptr<const status_page::Sheet> sheet_;
  std::size_t index_;
};

// Where an agent has the pages for its workers from.  A file for each page would take as long to
// make as a pipe and a half; so workers of one agent, who are all of one user, share them.
class StatusBoard {
 public:
  Result<StatusPage> next();

 private:
  std::shared_ptr<const status_page::Sheet> sheet_;
  std::size_t used_ = 0;
};

// The worker's side.  Costs some tens of nanoseconds and no system call.  Belongs to one thread at
// a time; two writers of one process that speak in the same moment may garble what is read, and no
// more.  In a child that the worker forks it does nothing: the page is about the worker.
class StatusWriter {
 public:
  StatusWriter() = default;  // tells nobody

  // From what kStatusVariable says.  Tells nobody if there is no such page behind that number: a
  // script in between may have closed it, or have it used for something else.
  static StatusWriter open(const char* handle);

  explicit operator bool() const { return static_cast<bool>(pages_); }

  void say(std::string_view text) { put(text, false); }

  // An operation begins, and ends.  begin_again() is for one that is described as the last was: it
  // costs a few stores.
  void begin(std::string_view operation) { put(operation, true); }
  void begin_again();
  void finish(bool failed = false);

 private:
  void put(std::string_view text, bool operation);

  status_page::Mapping pages_;
  std::size_t index_ = 0;  // of its own
  ForkMark mark_;
};

}  // namespace corro
