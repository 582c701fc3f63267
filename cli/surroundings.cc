#include "cli/surroundings.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "base/fd.h"
#include "launcher/hosts/discovery.h"

namespace corro::cli {

namespace {

// Horovod's limit for what it finds out before a job.
constexpr auto kScriptTimeout = std::chrono::seconds(30);

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

// Pipes too, as in -hostfile <(command).
Result<std::string> read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const int why = errno;
    return Error(why == ENOENT ? Errc::not_found : Errc::invalid_input,
                 Error::from_errno("reading " + path, why).text());
  }
  std::string text;
  std::vector<std::uint8_t> buffer(1 << 16);
  for (;;) {
    const auto moved = read_some(fd.get(), buffer);
    if (!moved) return Error(Errc::invalid_input, "reading " + path + ": " + moved.error().text());
    if (moved->bytes == 0) return text;
    text.append(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(moved->bytes));
    if (text.size() > launcher::kHostTextLimit)
      return Error(Errc::too_large,
                   fmt::format("{} has more than {} MiB", path, launcher::kHostTextLimit >> 20));
  }
}

bool is_here(const launcher::HostSpec& host) {
  static const auto names = launcher::names_of_this_machine();
  return launcher::is_this_machine(host.name, names);
}

}  // namespace

Surroundings own_surroundings() {
  return {variable, read_file,
          [](const std::string& script) {
            return launcher::run_discovery_script(script, Deadline::in(kScriptTimeout));
          },
          [](const launcher::HostSpec&) { return std::optional<int>(); }, is_here};
}

}  // namespace corro::cli
