#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace corro {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;
using MutByteView = std::span<std::uint8_t>;

inline ByteView view_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline std::string_view text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline void append(Bytes& to, ByteView more) {
  to.insert(to.end(), more.begin(), more.end());
}

inline Bytes bytes_of(std::string_view text) {
  const ByteView view = view_of(text);
  return Bytes(view.begin(), view.end());
}

}  // namespace corro
