#include "cli/refusal.h"

#include <fmt/format.h>

namespace corro::cli {

Error refuse(std::string text) {
  return Error(Errc::invalid_input, std::move(text));
}

std::string argument_text(const Option& option, std::string_view what) {
  return fmt::format("argument {}: {}", option.names, what);
}

Error refuse(const Option& option, std::string_view what) {
  return refuse(argument_text(option, what));
}

}  // namespace corro::cli
