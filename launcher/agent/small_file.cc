#include "launcher/agent/small_file.h"

#include <fcntl.h>

#include "base/fd.h"

namespace corro::launcher::agent {

std::optional<std::string> read_small(const std::string& path, std::size_t most) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return std::nullopt;
  std::string text;
  while (text.size() < most) {
    const std::size_t before = text.size(), room = std::min<std::size_t>(most - before, 4096);
    text.resize(before + room);
    const auto moved = read_some(fd.get(), {reinterpret_cast<std::uint8_t*>(&text[before]), room});
    text.resize(before + (moved ? moved->bytes : 0));
    if (!moved) return std::nullopt;
    if (moved->bytes == 0) break;
  }
  return text;
}

}  // namespace corro::launcher::agent
