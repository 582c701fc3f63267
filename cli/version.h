#pragma once

#include <string_view>

namespace corro::cli {

// What scripts read to learn which Horovod this is.
inline constexpr std::string_view kHorovodVersion = "0.28.1";

}  // namespace corro::cli
