#include "launcher/output/seam.h"

namespace kolo {

std::string Seam::before(const Words& words) const {
  if (words.resumed && words.speaker == speaker_) return {};
  const bool breaks = !words.speaker || open_ || (on_terminal_ && last_ != '\r');
  return (inside_line() && breaks ? "\n" : "") + words.resumed.value_or("");
}

void Seam::wrote(const Words& words) {
  speaker_ = words.speaker;
  open_ = words.open;
  last_ = words.speaker ? words.text.back() : '\n';
}

}  // namespace kolo
