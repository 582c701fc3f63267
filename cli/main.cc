#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/process.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/parse.h"
#include "launcher/agent/guard.h"
#include "launcher/job/job.h"

namespace kolo {

namespace {

constexpr int kExitUsage = 2;
// What scripts read to learn which Horovod this is.
constexpr std::string_view kHorovodVersion = "0.28.1";

// Whoever starts us with one of the three closed must not find his job's pipes or sockets there.
void fill_standard_descriptors() {
  int fd;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  ::close(fd);
}

// Whether the user can do something about it, or the system could not.
int exit_code(const Error& error) {
  const bool usage = error.code() == Errc::invalid_input || error.code() == Errc::unsupported;
  return usage ? kExitUsage : kExitInternal;
}

void say(std::FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

int carry_out(const ShowHelp&) {
  say(stdout, help_text());
  return 0;
}

int carry_out(const ShowVersion&) {
  say(stdout, fmt::format("{}\nKolo {}\n", kHorovodVersion, KOLO_VERSION));
  return 0;
}

int carry_out(RunJob run) {
  if (run.verbose) log_from(LogLevel::info);
  std::error_code error;
  run.spec.self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  run.spec.cwd = std::filesystem::current_path(error).string();
  run.spec.env = own_environment();
  const auto outcome =
      run_job(run.spec, [](const News& news) { log(LogLevel::info, message_for(news)); });
  if (!outcome) {
    say(stderr, message_for(outcome.error()));
    return exit_code(outcome.error());
  }
  say(stderr, message_for(*outcome));
  return exit_code(*outcome);
}

int main_with(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments.front() == "--guard") return run_guard();
  auto request = parse_command_line(arguments);
  if (!request) {
    say(stderr, usage_text() + message_for(request.error()));
    return kExitUsage;
  }
  return std::visit([](auto&& r) { return carry_out(std::move(r)); }, std::move(*request));
}

}  // namespace
}  // namespace kolo

int main(int argc, char** argv) {
  kolo::fill_standard_descriptors();
  return kolo::main_with(std::vector<std::string>(argv + 1, argv + argc));
}
