#pragma once

namespace corro::launcher {

// Which of a worker's two streams.
enum class Stream { out, err };
constexpr Stream last_of(Stream) {
  return Stream::err;
}

}  // namespace corro::launcher
