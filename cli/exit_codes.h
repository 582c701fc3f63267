#pragma once

#include <span>
#include <string_view>

namespace corro::cli {

// What an exit code means, for --help and the man page.
struct ExitCode {
  std::string_view codes, what;
};
std::span<const ExitCode> exit_codes();

}  // namespace corro::cli
