#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
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

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** entry = ::environ; *entry; ++entry) out.emplace_back(*entry);
  return out;
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
    return kExitUsage;
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
  return kolo::main_with(std::vector<std::string>(argv + 1, argv + argc));
}
