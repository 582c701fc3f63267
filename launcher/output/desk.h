#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/output/files.h"
#include "launcher/output/line_tagger.h"
#include "launcher/output/printer.h"

namespace corro::launcher {

// Where the workers' words go: with a tag in front of each line to the launcher's own stdout and
// stderr, and to files of their own where the user wants them.
//
// Belongs to one thread; the callbacks come from others.
class OutputDesk {
 public:
  using Fn = std::function<void()>;

  // The workers by rank; a speaker's stream is not looked at.
  static Result<std::unique_ptr<OutputDesk>> open(const OutputStyle&, std::vector<Speaker> workers);

  // `written`: it is in the file and on the terminal, or will never be.
  void put(int rank, Stream, std::string_view bytes, WallTime, Fn written);

  // The last words, which may lack a newline.
  void finish(int rank);

  // Words of our own on stderr, after all that was put before.
  void say(std::string lines);

  // One line about how far the job is, for people at a terminal; an empty one takes it away.  Gone
  // for good with the first output.
  void show_status(const std::string& text);

  // Waits until all that was put is written, or will never be.
  void settle();

  // After that: how many bytes a terminal did not take, and whether stderr was left inside a line.
  std::uint64_t not_shown() const;
  bool inside_line() const;

 private:
  OutputDesk(const OutputStyle&, std::vector<Speaker> workers, std::optional<OutputFiles>);

  // One stream of one worker.  A file gets no colours, so where they are shown its lines are made
  // apart.
  struct Lines {
    LineTagger shown;
    std::optional<LineTagger> kept;
  };
  struct Worker {
    Lines out, err;
  };
  Lines& lines_of(int rank, Stream);
  void write(int rank, Stream, Words shown, std::optional<std::string> kept, Fn written);
  void keep(int rank, Stream, std::string text, Fn written);

  Outlet& outlet(Stream stream) { return stream == Stream::err && err_ ? *err_ : out_; }

  std::vector<Worker> workers_;
  Fd own_out_, own_err_;  // descriptions of terminals
  Outlet out_;
  std::optional<Outlet> err_;  // unless it is the same place
  bool has_spoken_ = false;
  std::string status_;  // that is shown
  const std::string directory_;
  std::optional<OutputFiles> files_;
  std::atomic<bool> complained_ = false;

  std::optional<Printer> terminal_;
  std::optional<Printer> keeper_;  // last: it hands on to the terminal
};

}  // namespace corro::launcher
