#include "launcher/output/line_tagger.h"

#include <utility>

namespace kolo {

LineTagger::LineTagger(const TagFormat& format, Speaker speaker, bool in_color)
    : format_(format), speaker_(std::move(speaker)), in_color_(in_color) {
  if (!format_.has_time()) fixed_tag_ = tag();
}

std::string LineTagger::tag() const {
  const std::string plain = format_.text(speaker_, time_);
  return in_color_ && !plain.empty() ? colored(plain, speaker_.rank) : plain;
}

void LineTagger::emit(std::string_view piece, std::string& to) {
  if (!inside_line_) to += format_.has_time() ? tag() : fixed_tag_;
  to += piece;
  inside_line_ = !piece.ends_with('\n') && !piece.ends_with('\r');
}

std::string LineTagger::feed(std::string_view bytes, WallTime time) {
  time_ = time;
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

}  // namespace kolo
