#include "base/status_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/text.h"

namespace corro {

namespace status_page {

constexpr std::size_t kWords = kStatusTextBytes / sizeof(std::uint64_t);
static_assert(kWords * sizeof(std::uint64_t) == kStatusTextBytes);

// Said once, whole.  Words and not bytes, each atomic: the reader may look at any time.
struct Said {
  std::atomic<std::uint64_t> begun, finished, changed_ns, size;
  std::atomic<std::uint64_t> is_operation;  // 1: the text describes the operation `begun`
  std::array<std::atomic<std::uint64_t>, kWords> text;
};

// Two places, used in turn.  `turn` counts what was said, and said[turn % 2] is the last of it; the
// other one is being written.  So there is a whole one even if the writer was killed in the middle,
// where a lock of one sequence number would stay taken.
struct Page {
  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint64_t> turn;
  std::array<Said, 2> said;
  // Operations since then that are described in the same words: what changes with each of them is
  // a number, so a few stores are enough.  A reader may see one of them before the other.
  std::atomic<std::uint64_t> again_begun, again_finished, again_failed, again_ns;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "it is shared by processes");

constexpr std::uint64_t kMagic = 0x3153'5554'4154'5343;  // "CSTATUS1"
constexpr std::size_t kPageBytes = 4096;
static_assert(sizeof(Page) <= kPageBytes);
constexpr std::size_t kPages = 64;  // on a sheet
constexpr std::size_t kSheetBytes = kPages * kPageBytes;

// The file can no longer shrink, which would be SIGBUS for whoever reads it.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Mapping::~Mapping() {
  if (at_) ::munmap(at_, kSheetBytes);
}

Page& Mapping::page(std::size_t index) const {
  return *reinterpret_cast<Page*>(static_cast<std::byte*>(at_) + index * kPageBytes);
}

namespace {

// All of it: where the machine's own pages are larger, one of ours could not be mapped alone.
Mapping map(int fd) {
  void* at = ::mmap(nullptr, kSheetBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return Mapping(at == MAP_FAILED ? nullptr : at);
}

bool is_sheet(int fd) {
  struct stat info;
  return ::fstat(fd, &info) == 0 && info.st_size == kSheetBytes &&
         ::fcntl(fd, F_GET_SEALS) == kSeals;
}

Result<Sheet> make_sheet() {
  Fd fd(::memfd_create("corro-status", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return Error::from_errno("making status pages");
  if (::ftruncate(fd.get(), kSheetBytes) != 0 || ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
    return Error::from_errno("making status pages");
  Mapping pages = map(fd.get());
  if (!pages) return Error::from_errno("mapping status pages");
  return Sheet{std::move(fd), std::move(pages)};
}

constexpr auto kRelaxed = std::memory_order_relaxed;

Status copy(const Said& said, bool& operation) {
  Status status;
  status.begun = said.begun.load(std::memory_order_acquire);
  status.finished = said.finished.load(std::memory_order_acquire);
  status.changed_ns = static_cast<std::int64_t>(said.changed_ns.load(std::memory_order_acquire));
  operation = said.is_operation.load(std::memory_order_acquire) == 1;
  std::array<std::uint64_t, kWords> words;
  for (std::size_t i = 0; i < kWords; ++i) words[i] = said.text[i].load(std::memory_order_acquire);
  const auto size =
      std::min<std::uint64_t>(said.size.load(std::memory_order_acquire), kStatusTextBytes);
  status.text.assign(reinterpret_cast<const char*>(words.data()), size);
  return status;
}

void add_again(Status& status, const Page& page) {
  const auto finished = page.again_finished.load(std::memory_order_acquire);
  const auto begun = page.again_begun.load(std::memory_order_acquire);
  const auto ns = static_cast<std::int64_t>(page.again_ns.load(std::memory_order_acquire));
  status.finished = std::max(status.finished, finished);
  status.begun = std::max({status.begun, begun, status.finished});
  status.changed_ns = std::max(status.changed_ns, ns);
}

void make_printable(std::string& text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
}

std::int64_t now_ns() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

// A text that is too long is not cut in the middle of a character.
std::string_view fitting(std::string_view text) {
  if (text.size() <= kStatusTextBytes) return text;
  std::size_t size = kStatusTextBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size);
}

void put_text(Said& to, std::string_view text) {
  text = fitting(text);
  std::array<std::uint64_t, kWords> words;
  std::memcpy(words.data(), text.data(), text.size());
  const auto used = (text.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < used; ++i) to.text[i].store(words[i], std::memory_order_release);
  to.size.store(text.size(), std::memory_order_release);
}

void put_counts(Said& to, std::uint64_t begun, std::uint64_t finished) {
  to.begun.store(begun, std::memory_order_release);
  to.finished.store(finished, std::memory_order_release);
}

std::uint64_t begun_on(const Page& page) {
  const Said& last = page.said[page.turn.load(kRelaxed) % 2];
  return std::max(last.begun.load(kRelaxed), page.again_begun.load(kRelaxed));
}

std::uint64_t finished_on(const Page& page) {
  const Said& last = page.said[page.turn.load(kRelaxed) % 2];
  return std::max(last.finished.load(kRelaxed), page.again_finished.load(kRelaxed));
}

// A reading of the clock that costs a fifth of an exact one and is good to some milliseconds.
std::uint64_t about_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// `fill` writes the place that nobody reads now.
template <class Fill>
void publish(Page& page, Fill fill) {
  const auto turn = page.turn.load(kRelaxed);
  // Every word of a place is stored with release: the turn that took readers away from it is seen
  // before anything that is written to it.  (A fence would do, but TSan knows none.)
  Said& next = page.said[(turn + 1) % 2];
  fill(next);
  next.changed_ns.store(static_cast<std::uint64_t>(now_ns()), std::memory_order_release);
  page.turn.store(turn + 1, std::memory_order_release);
}

}  // namespace
}  // namespace status_page

using namespace status_page;

Result<StatusPage> StatusBoard::next() {
  if (!sheet_ || used_ == kPages) {
    auto sheet = make_sheet();
    if (!sheet) return sheet.error();
    sheet_ = std::make_shared<const Sheet>(std::move(*sheet));
    used_ = 0;
  }
  sheet_->pages.page(used_).magic.store(kMagic, std::memory_order_release);
  return StatusPage(sheet_, used_++);
}

std::string StatusPage::handle(int fd) const {
  return fmt::format("{}:{}", fd, index_);
}

Status StatusPage::read() const {
  // A writer that is as quick as it can be still leaves the place alone for the time that another
  // operation takes; a second look is rare, and more of them mean that the page is not written by
  // the rules.
  constexpr int kLooks = 10'000;
  const Page& page = sheet_->pages.page(index_);
  Status status;
  bool operation = false;
  std::uint64_t failed = 0;
  for (int look = 0; look < kLooks; ++look) {
    const auto turn = page.turn.load(std::memory_order_acquire);
    status = copy(page.said[turn % 2], operation);
    add_again(status, page);
    failed = page.again_failed.load(std::memory_order_acquire);
    // And loaded with acquire: if one word of what was copied is newer than `turn` says, then the
    // turn that let it be written is seen here.
    if (page.turn.load(kRelaxed) == turn) break;
  }
  if (operation) status.text += fmt::format(", call {}", status.begun);
  if (operation && failed == status.begun) status.text += ", which failed";
  make_printable(status.text);
  return status;
}

StatusWriter StatusWriter::open(const char* handle) {
  const auto parts = split(handle ? handle : "", ':');
  if (parts.size() != 2) return {};
  const auto fd = parse_int(parts[0]), place = parse_int(parts[1]);
  if (!fd || *fd < 0 || *fd > 1 << 20) return {};
  if (!place || *place < 0 || *place >= static_cast<long long>(kPages)) return {};
  const int descriptor = static_cast<int>(*fd);
  if (!is_sheet(descriptor)) return {};
  Mapping pages = map(descriptor);
  const auto own = static_cast<std::size_t>(*place);
  if (!pages || pages.page(own).magic.load(std::memory_order_acquire) != kMagic) return {};
  // It stays open, for a second context of this process, but is none of its children's business.
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);

  StatusWriter writer;
  writer.pages_ = std::move(pages);
  writer.index_ = own;
  writer.mark_ = ForkMark::make();
  return writer;
}

void StatusWriter::put(std::string_view text, bool operation) {
  if (!mark_.here()) return;
  Page& page = pages_.page(index_);
  const auto begun = begun_on(page) + (operation ? 1 : 0), finished = finished_on(page);
  publish(page, [&](Said& next) {
    put_text(next, text);
    put_counts(next, begun, finished);
    next.is_operation.store(operation ? 1 : 0, std::memory_order_release);
  });
}

void StatusWriter::begin_again() {
  if (!mark_.here()) return;
  Page& page = pages_.page(index_);
  page.again_begun.store(begun_on(page) + 1, std::memory_order_release);
  page.again_ns.store(about_now_ns(), std::memory_order_release);
}

void StatusWriter::finish(bool failed) {
  if (!mark_.here()) return;
  Page& page = pages_.page(index_);
  const auto begun = begun_on(page);
  if (failed) page.again_failed.store(begun, std::memory_order_release);
  page.again_finished.store(begun, std::memory_order_release);
  page.again_ns.store(about_now_ns(), std::memory_order_release);
}

}  // namespace corro
