#include "launcher/output/line_tagger.h"

#include <fmt/format.h>

#include <utility>

namespace kolo {

void LineTagger::emit(std::string_view piece, std::string& to) {
  if (!inside_line_) to += tag_;
  to += piece;
  inside_line_ = !piece.ends_with('\n') && !piece.ends_with('\r');
}

std::string LineTagger::feed(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const auto end = bytes.find_first_of("\n\r");
    const auto piece = bytes.substr(0, end == bytes.npos ? bytes.npos : end + 1);
    pending_ += piece;
    bytes.remove_prefix(piece.size());
    if (end != bytes.npos || pending_.size() >= kLineLimit) emit(std::exchange(pending_, {}), out);
  }
  return out;
}

std::string LineTagger::finish() {
  std::string out;
  if (!pending_.empty()) emit(std::exchange(pending_, {}), out);
  inside_line_ = false;
  return out;
}

std::string tag_of(int rank, Stream stream) {
  return fmt::format("[{}]<{}>:", rank, stream == Stream::out ? "stdout" : "stderr");
}

}  // namespace kolo
