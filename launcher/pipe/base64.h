#pragma once

#include <string>

#include "base/bytes.h"

namespace corro::launcher {

// As in files of keys: with padding, in one line.
std::string base64(ByteView);

}  // namespace corro::launcher
