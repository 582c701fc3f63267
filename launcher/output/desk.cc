#include "launcher/output/desk.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace corro::launcher {

namespace {

bool in_color(Color color, Stream stream) {
  if (color != Color::automatic) return color == Color::always;
  const char* terminal = std::getenv("TERM");
  const char* plain = std::getenv("NO_COLOR");
  const bool dumb = !terminal || std::string_view(terminal) == "dumb" || (plain && *plain);
  return !dumb && ::isatty(stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO);
}

// Whether both are the same terminal, pipe or file.
bool are_one(int a, int b) {
  struct stat of_a, of_b;
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

Result<std::unique_ptr<OutputDesk>> OutputDesk::open(const OutputStyle& style,
                                                     std::vector<Speaker> workers) {
  std::optional<OutputFiles> files;
  if (!style.directory.empty()) {
    auto opened = OutputFiles::open(style.directory, static_cast<int>(workers.size()));
    if (!opened) return std::move(opened.error()).during("--output-filename");
    files = std::move(*opened);
  }
  return std::unique_ptr<OutputDesk>(new OutputDesk(style, std::move(workers), std::move(files)));
}

OutputDesk::OutputDesk(const OutputStyle& style, std::vector<Speaker> workers,
                       std::optional<OutputFiles> files)
    : out_(Outlet::of(STDOUT_FILENO, own_out_)),
      err_(are_one(STDOUT_FILENO, STDERR_FILENO)
               ? std::nullopt
               : std::optional(Outlet::of(STDERR_FILENO, own_err_))),
      directory_(style.directory),
      files_(std::move(files)) {
  terminal_.emplace();
  const auto lines = [&](Speaker speaker, Stream stream) {
    speaker.stream = stream;
    const bool colored = in_color(style.color, stream);
    std::optional<LineTagger> kept;
    if (colored && files_) kept.emplace(style.tag, speaker, false);
    return Lines{LineTagger(style.tag, speaker, colored), std::move(kept)};
  };
  for (const Speaker& speaker : workers)
    workers_.push_back({lines(speaker, Stream::out), lines(speaker, Stream::err)});
  if (files_) keeper_.emplace();
}

OutputDesk::Lines& OutputDesk::lines_of(int rank, Stream stream) {
  return stream == Stream::out ? workers_[rank].out : workers_[rank].err;
}

void OutputDesk::put(int rank, Stream stream, std::string_view bytes, WallTime time, Fn written) {
  Lines& lines = lines_of(rank, stream);
  std::optional<std::string> kept;
  if (lines.kept) kept = lines.kept->feed(bytes, time);
  Words shown{.speaker = &lines, .resumed = lines.shown.open_line()};
  shown.text = lines.shown.feed(bytes, time);
  shown.open = lines.shown.open_line().has_value();
  write(rank, stream, std::move(shown), std::move(kept), std::move(written));
}

void OutputDesk::finish(int rank) {
  for (const Stream stream : {Stream::out, Stream::err}) {
    Lines& lines = lines_of(rank, stream);
    std::optional<std::string> kept;
    if (lines.kept) kept = lines.kept->finish();
    Words shown{.speaker = &lines, .resumed = lines.shown.open_line()};
    shown.text = lines.shown.finish();
    write(rank, stream, std::move(shown), std::move(kept), [] {});
  }
}

// First into the file, then on: what is seen can be looked up.
void OutputDesk::write(int rank, Stream stream, Words shown, std::optional<std::string> kept,
                       Fn written) {
  if (!shown.text.empty()) {
    show_status("");
    has_spoken_ = true;
  }
  if (files_ && !kept) kept = shown.text;
  if (shown.text.empty() && (!kept || kept->empty())) return written();
  Fn show = [this, stream, shown = std::move(shown), written = std::move(written)]() mutable {
    terminal_->print(outlet(stream), std::move(shown),
                     [written = std::move(written)](const Result<Unit>&) { written(); });
  };
  if (files_)
    keep(rank, stream, std::move(*kept), std::move(show));
  else
    show();
}

void OutputDesk::keep(int rank, Stream stream, std::string text, Fn written) {
  keeper_->print(files_->outlet(rank, stream), {std::move(text)},
                 [this, rank, written = std::move(written)](const Result<Unit>& result) {
                   if (!result && !complained_.exchange(true))
                     terminal_->print(
                         outlet(Stream::err),
                         {fmt::format("horovodrun: what rank {} says cannot be kept in {}: {}\n",
                                      rank, directory_, result.error().text())});
                   written();
                 });
}

// The status stays the last line.  While there is one nothing has gone by way of the files, so that
// nothing is overtaken.
void OutputDesk::say(std::string lines) {
  if (!status_.empty()) lines = std::string(kClearLine) + lines + status_;
  Fn show = [this, lines = std::move(lines)]() mutable {
    terminal_->print(outlet(Stream::err), {std::move(lines)});
  };
  if (files_ && has_spoken_)
    keep(0, Stream::err, {}, std::move(show));
  else
    show();
}

void OutputDesk::show_status(const std::string& text) {
  if (has_spoken_ || !outlet(Stream::err).patience || text == status_) return;
  status_ = text;
  terminal_->print(outlet(Stream::err), {std::string(kClearLine) + text});
}

std::uint64_t OutputDesk::not_shown() const {
  return out_.missed_all + (err_ ? err_->missed_all : 0);
}

bool OutputDesk::inside_line() const {
  const Outlet& err = err_ ? *err_ : out_;
  return err.gap.is_open() || err.seam->inside_line();
}

void OutputDesk::settle() {
  keeper_.reset();
  terminal_.reset();
}

}  // namespace corro::launcher
