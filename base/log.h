#pragma once

#include <string_view>

namespace corro {

enum class LogLevel { debug, info, warning, error };

// Lines for people, on stderr, coloured only on a terminal.  Any thread.
void log(LogLevel, std::string_view message);
void log_from(LogLevel least);

}  // namespace corro
