#include "launcher/hosts/fault.h"

#include <fmt/format.h>

#include "base/text.h"

namespace corro::launcher {

namespace {

std::string name_of_character(std::string_view text) {
  const CodePoint c = first_code_point(text);
  if (c.value == ' ' || c.value == '\t') return "a blank";
  if (c.value == '\n' || c.value == '\r') return "a line break";
  if (c.value == CodePoint::kNotUtf8 || c.value < ' ' || c.value == 0x7F)
    return fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(text[0]));
  return fmt::format("'{}'", text.substr(0, c.bytes));
}

}  // namespace

Fault misplaced_character(std::string_view text, std::size_t i, std::size_t at,
                          std::string_view where) {
  const auto rest = text.substr(i);
  return {{at + i, first_code_point(rest).bytes},
          fmt::format("{} does not belong in {}", name_of_character(rest), where),
          ""};
}

}  // namespace corro::launcher
