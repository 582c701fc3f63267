#include "launcher/pipe/ssh_config.h"

#include "tests/fuzz/fuzz.h"

using namespace corro;
using namespace corro::launcher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(text_of({data, size}));
  const SshSurroundings around{
      "/home/ada", "ada",
      [&](const std::string& path) {
        return path.ends_with("/.ssh/config") ? std::optional(text) : std::nullopt;
      },
      [](const std::string&) { return std::vector<std::string>(); },
      [](const std::string&) { return std::optional<std::string>("value"); }};
  const auto read = fuzz::in_time([&] { return read_ssh_config("host", "", 0, around); });
  fuzz::require(read.proxy_jump.empty() || read.proxy_command.empty(), "one way at the most");
  fuzz::require(read.port >= 0 && read.connect_timeout_s >= 0, "numbers are numbers");
  fuzz::require(read_ssh_config("host", "", 0, around) == read, "it reads the same twice");
  return 0;
}
