#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace corro {

std::string_view name_of(Errc code) {
  switch (code) {
    case Errc::invalid_input:
      return "invalid input";
    case Errc::not_found:
      return "not found";
    case Errc::exists:
      return "exists";
    case Errc::timed_out:
      return "timed out";
    case Errc::refused:
      return "refused";
    case Errc::malformed:
      return "malformed";
    case Errc::too_large:
      return "too large";
    case Errc::peer_lost:
      return "peer lost";
    case Errc::closed:
      return "closed";
    case Errc::unsupported:
      return "unsupported";
    case Errc::io:
      return "io";
  }
  return "unknown";
}

Error Error::from_errno(std::string_view doing) {
  return from_errno(doing, errno);
}

Error Error::from_errno(std::string_view doing, int number) {
  const Errc code = number == ETIMEDOUT ? Errc::timed_out : Errc::io;
  return Error(code, std::generic_category().message(number)).during(doing);
}

}  // namespace corro
