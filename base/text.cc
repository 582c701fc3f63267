#include "base/text.h"

#include <csignal>
#include <cstring>

namespace kolo {

std::string signal_name(int signo) {
  const char* abbreviation = ::sigabbrev_np(signo);
  return abbreviation ? std::string("SIG") + abbreviation : "signal " + std::to_string(signo);
}

}  // namespace kolo
