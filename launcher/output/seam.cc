#include "launcher/output/seam.h"

namespace kolo {

std::string Seam::before(const Words& words) const {
  const bool breaks = !words.speaker || (on_terminal_ && last_ != '\r');
  return inside_line() && breaks ? "\n" : "";
}

void Seam::wrote(const Words& words) {
  last_ = words.speaker ? words.text.back() : '\n';
}

}  // namespace kolo
