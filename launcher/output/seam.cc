#include "launcher/output/seam.h"

namespace corro::launcher {

namespace {

constexpr auto kClearToEnd = "\x1b[K";

}  // namespace

std::string Seam::before(const Words& words) const {
  const bool same = words.speaker == speaker_;
  if (words.resumed && same) return {};
  const bool on_bar = on_terminal_ && last_ == '\r';
  const bool breaks = !words.speaker || open_ || (on_terminal_ && !on_bar);
  const auto between = inside_line() && breaks ? "\n" : on_bar && !same ? kClearToEnd : "";
  return between + words.resumed.value_or("");
}

void Seam::wrote(const Words& words) {
  speaker_ = words.speaker;
  open_ = words.open;
  last_ = words.speaker ? words.text.back() : '\n';
}

}  // namespace corro::launcher
