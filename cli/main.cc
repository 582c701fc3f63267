#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/process.h"
#include "base/time.h"
#include "cli/check_build.h"
#include "cli/complete.h"
#include "cli/doctor.h"
#include "cli/dry_run.h"
#include "cli/failure_report.h"
#include "cli/help.h"
#include "cli/messages.h"
#include "cli/parse.h"
#include "cli/surroundings.h"
#include "cli/version.h"
#include "launcher/agent/guard.h"
#include "launcher/doctor/diagnose.h"
#include "launcher/job/consult.h"
#include "launcher/job/job.h"
#include "launcher/job/placing.h"
#include "launcher/job/preview.h"
#include "launcher/pipe/pipe.h"

namespace corro::cli {

namespace doctor = launcher::doctor;

namespace {

constexpr int kExitUsage = 2;

// Whoever starts us with one of the three closed must not find his job's pipes or sockets there.
void fill_standard_descriptors() {
  int fd;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  ::close(fd);
}

// Buffers of some hundred kilobytes come and go while workers write: to give each back to the
// kernel and to be given it again costs more than what is done with it.
void keep_freed_memory() {
  constexpr int kKept = 16 << 20;
  ::mallopt(M_TRIM_THRESHOLD, kKept);
  ::mallopt(M_MMAP_THRESHOLD, kKept);
}

// Whether the user can do something about it, or the system could not.
int exit_code(const Error& error) {
  const bool usage = error.code() == Errc::invalid_input || error.code() == Errc::unsupported;
  return usage ? kExitUsage : launcher::kExitInternal;
}

void say(std::FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

void say_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) say(stderr, fmt::format("horovodrun: note: {}\n", note));
}

// What is not said on the command line.
void complete_spec(launcher::JobSpec& spec) {
  std::error_code error;
  spec.self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  spec.cwd = std::filesystem::current_path(error).string();
  spec.environment.inherited = own_environment();
  ::umask(static_cast<mode_t>(spec.umask = ::umask(077)));
}

int carry_out(const ShowHelp&) {
  say(stdout, help_text());
  return 0;
}

int carry_out(const ShowVersion&) {
  say(stdout, fmt::format("{}\nCorro {}\n", kHorovodVersion, CORRO_VERSION));
  return 0;
}

int carry_out(const CheckBuild& check) {
  say(stdout, check_build_text(find_capabilities(own_surroundings().variable), check.verbose));
  return 0;
}

int carry_out(const ShowHosts& show) {
  say_notes(show.notes);
  std::string text = show.format ? print_hosts(show.hosts, *show.format) : hosts_json(show.hosts);
  if (!text.ends_with('\n')) text += '\n';
  say(stdout, text);
  return 0;
}

// One line that is written over and over, if somebody sits there.
launcher::WatchConsult progress_on_terminal() {
  if (!::isatty(STDERR_FILENO)) return {};
  return [](const launcher::ConsultProgress& progress) {
    say(stderr, fmt::format("\r\x1b[Khorovodrun: {}", progress_text(progress)));
  };
}

void clear_progress() {
  if (::isatty(STDERR_FILENO)) say(stderr, "\r\x1b[K");
}

Checkup check_up(const launcher::JobSpec& spec) {
  Checkup out;
  out.consultation = consult(spec, progress_on_terminal());
  clear_progress();
  out.findings = doctor::diagnose(out.consultation);
  if (auto left = doctor::exclude_bad(spec.hosts, out.findings, spec.np))
    out.remaining = std::move(*left);
  return out;
}

bool is_in_color(launcher::Color color) {
  return color == launcher::Color::always ||
         (color == launcher::Color::automatic && ::isatty(STDOUT_FILENO));
}

int carry_out(SeeDoctor see) {
  say_notes(see.notes);
  complete_spec(see.spec);
  const Checkup found = check_up(see.spec);
  say(stdout,
      see.json ? doctor_json(found) : doctor_text(found, is_in_color(see.spec.output.color)));
  return doctor::exit_code(found.findings);
}

void say_bad(const std::vector<doctor::Finding>& findings) {
  for (const doctor::Finding& finding : findings)
    if (finding.severity == doctor::Severity::bad)
      say(stderr, fmt::format("horovodrun: {}\n  fix: {}\n", headline(finding), finding.fix));
}

// --exclude-bad.  What to end with if it cannot be done.
std::optional<int> leave_out_bad_hosts(launcher::JobSpec& spec) {
  const Checkup found = check_up(spec);
  const int code = doctor::exit_code(found.findings);
  if (code == 0) return std::nullopt;
  say_bad(found.findings);
  auto left = doctor::exclude_bad(spec.hosts, found.findings, spec.np);
  if (!left) {
    say(stderr, message_for(left.error()));
    return code;
  }
  spec.hosts = std::move(*left);
  say(stderr, fmt::format("horovodrun: going on with {}\n",
                          print_hosts(spec.hosts, launcher::HostFormat::horovod)));
  return std::nullopt;
}

int show_preview(const RunJob& run) {
  const launcher::Preview found = preview(run.spec, progress_on_terminal());
  clear_progress();
  say(stdout, run.json ? dry_run_json(run.spec, found) : dry_run_text(run.spec, found));
  return found.exit_code();
}

// How many workers the hosts take that came without a number, or what to end with.
Result<std::map<std::string, int>, int> ask_hosts(AskHosts ask) {
  complete_spec(ask.spec);
  auto consultation = consult(ask.spec, progress_on_terminal(), launcher::Look::gpus);
  clear_progress();
  std::map<std::string, int> slots;
  for (doctor::HostReport& host : consultation.hosts) {
    slots[host.host] = host.seen ? natural_slots(ask.spec, host.host, host.seen->gpus) : 1;
    host.seen.reset();  // at the rest nobody has looked
  }
  const auto findings = doctor::diagnose(consultation);
  const int code = doctor::exit_code(findings);
  if (code == 0 || !ask.needs_all) return slots;
  say_bad(findings);
  return code;
}

// Beside what the workers wrote; one of an earlier job is not left there.
void keep_report(const std::string& directory, const launcher::Outcome& outcome) {
  if (directory.empty()) return;
  const auto path = directory + "/failure.json";
  std::error_code error;
  std::filesystem::remove(path, error);
  if (!outcome.failure && !outcome.interrupted_by) return;
  std::ofstream file(path);
  if (!(file << failure_json(outcome) << std::flush))
    log(LogLevel::warning, "the report could not be written to " + path);
}

int carry_out(RunJob run) {
  log_from(run.log_from);
  say_notes(run.notes);
  complete_spec(run.spec);
  if (run.exclude_bad)
    if (const auto code = leave_out_bad_hosts(run.spec)) return *code;
  if (run.dry_run) return show_preview(run);
  const auto outcome =
      run_job(run.spec, [](const launcher::News& news) { return message_for(news); });
  if (!outcome) {
    say(stderr, message_for(outcome.error()));
    return exit_code(outcome.error());
  }
  keep_report(run.spec.output.directory, *outcome);  // first, as a terminal may stand still
  say(stderr, message_for(*outcome));
  return exit_code(*outcome, run.spec.exit_code_policy);
}

// For the shells: the words up to the cursor follow.
int show_completion(std::vector<std::string> words) {
  words.erase(words.begin());
  say(stdout, print_completion(complete(words, own_surroundings())));
  return 0;
}

// What the launcher starts for a host that is not this one.
int carry_frames(const std::vector<std::string>& arguments) {
  const auto target = launcher::parse_pipe_arguments(arguments);
  if (target) return launcher::run_pipe(*target);
  say(stderr, message_for(target.error()));
  return kExitUsage;
}

Surroundings knowing(std::map<std::string, int> slots, Surroundings around) {
  around.count_slots = [slots = std::move(slots)](const launcher::HostSpec& host) {
    const auto known = slots.find(host.name);
    return known == slots.end() ? 1 : known->second;
  };
  return around;
}

int read_and_carry_out(const std::vector<std::string>& arguments, const Surroundings& around,
                       TimePoint asked) {
  auto request = parse_command_line(arguments, around);
  if (!request) {
    say(stderr, usage_text(arguments) + message_for(request.error()));
    return kExitUsage;
  }
  if (auto* run = std::get_if<RunJob>(&*request)) run->spec.asked = asked;
  const auto carry_out_each = [&]<class R>(R&& each) {
    if constexpr (!std::is_same_v<R, AskHosts>)
      return carry_out(std::forward<R>(each));
    else {
      auto slots = ask_hosts(std::move(each));
      if (!slots) return slots.error();
      return read_and_carry_out(arguments, knowing(std::move(*slots), around), asked);
    }
  };
  return std::visit(carry_out_each, std::move(*request));
}

int main_with(const std::vector<std::string>& arguments, TimePoint asked) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "--guard" && arguments.size() <= 2)
    return launcher::run_guard(arguments.size() == 2 ? arguments.back() : "");
  if (first == "--ssh-pipe" || first == "--rsh-pipe") return carry_frames(arguments);
  if (first == "--complete") return show_completion(arguments);
  return read_and_carry_out(arguments, own_surroundings(), asked);
}

}  // namespace
}  // namespace corro::cli

int main(int argc, char** argv) {
  const auto asked = corro::Clock::now();
  corro::cli::fill_standard_descriptors();
  corro::cli::keep_freed_memory();
  return corro::cli::main_with(std::vector<std::string>(argv + 1, argv + argc), asked);
}
