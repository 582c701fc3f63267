#include "launcher/output/line_tagger.h"

#include <cstring>
#include <utility>

namespace corro::launcher {

namespace {

// With what ends it; all, if nothing does.  memchr looks at 32 bytes at a time, find_first_of at
// one, and this is where most of the launcher's time goes when workers write much.
std::size_t length_of_line(std::string_view bytes) {
  const auto find = [](std::string_view in, char c) {
    const void* at = std::memchr(in.data(), c, in.size());
    return at ? static_cast<std::size_t>(static_cast<const char*>(at) - in.data()) + 1 : in.size();
  };
  return find(bytes.substr(0, find(bytes, '\n')), '\r');
}

}  // namespace

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
  out.reserve(bytes.size() + bytes.size() / 4 + fixed_tag_.size());
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, length_of_line(bytes));
    bytes.remove_prefix(piece.size());
    const bool ends = piece.ends_with('\n') || piece.ends_with('\r');
    if (ends && pending_.empty()) {  // nearly all of them
      emit(piece, out);
      continue;
    }
    pending_ += piece;
    if (ends || pending_.size() >= kLineLimit) emit(std::exchange(pending_, {}), out);
  }
  return out;
}

std::optional<std::string> LineTagger::open_line() const {
  return inside_line_ ? std::optional(tag()) : std::nullopt;
}

std::string LineTagger::finish() {
  std::string out;
  if (!pending_.empty()) emit(std::exchange(pending_, {}), out);
  inside_line_ = false;
  return out;
}

}  // namespace corro::launcher
