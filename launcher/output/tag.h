#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/complaint.h"
#include "base/result.h"
#include "launcher/output/stream.h"

namespace corro::launcher {

using WallTime = std::chrono::system_clock::time_point;

// Whose line it is.
struct Speaker {
  int rank = 0, local_rank = 0;
  std::string host;
  Stream stream = Stream::out;
};

// What stands in front of every line of a worker.
class TagFormat {
 public:
  // "[{rank}]<{stream}>:", as Horovod has it.
  TagFormat();

  // {rank} {local_rank} {host} {stream} {time}; "{{" and "}}" are braces.
  static Result<TagFormat> parse(const Text&);

  // The same with the time glued in front.
  TagFormat with_time() &&;

  bool has_time() const;
  std::string text(const Speaker&, WallTime) const;
  bool operator==(const TagFormat&) const = default;

 private:
  enum class Field { rank, local_rank, host, stream, time };
  using Piece = std::variant<std::string, Field>;

  explicit TagFormat(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  static std::string text_of(Field, const Speaker&, WallTime);

  std::vector<Piece> pieces_;
};

enum class Color { automatic, always, never };

// How the job's output is shown and kept.
struct OutputStyle {
  TagFormat tag;
  Color color = Color::automatic;
  std::string directory;  // for a file for each worker's stream; empty: none
  bool operator==(const OutputStyle&) const = default;
};

// The tag in the colour of its rank, for terminals.
std::string colored(std::string_view tag, int rank);

}  // namespace corro::launcher
